-- Precedes a script. Fails each command on a key that is not in KEYS, and each command that it does not know.
local redis = (function(real)
  local declared = {}
  for i = 1, #KEYS do declared[KEYS[i]] = true end
  local NO_KEY, ALL_KEYS, SECOND = 0, -1, 2
  local places = {
    TIME = NO_KEY, INFO = NO_KEY, PUBLISH = NO_KEY, MGET = ALL_KEYS, DEL = ALL_KEYS, UNLINK = ALL_KEYS, OBJECT = SECOND,
  }
  for name in string.gmatch([[
    GET SET SETRANGE APPEND INCRBY INCRBYFLOAT PTTL PEXPIRE EXPIRE
    LRANGE LINDEX LLEN LSET LTRIM LPUSH LPOP LINSERT RPUSH
    HGET HMGET HGETALL HSET HDEL HSCAN
    ZADD ZREM ZSCORE ZCOUNT ZRANGEBYSCORE ZREVRANGE ZREMRANGEBYRANK ZREMRANGEBYSCORE
  ]], '%u+') do places[name] = 1 end
  local function check(name, ...)
    local place = places[string.upper(name)]
    if not place then error('UNDECLARED the checker does not know ' .. name, 0) end
    local first, last = place, place
    if place == ALL_KEYS then first, last = 1, select('#', ...) end
    for i = first, last do
      local key = i > 0 and select(i, ...)
      if key and not declared[key] then error('UNDECLARED key ' .. tostring(key) .. ' of ' .. name, 0) end
    end
  end
  local checked = setmetatable({}, { __index = real })
  checked.call = function(...) check(...) return real.call(...) end
  checked.pcall = function(...) check(...) return real.pcall(...) end
  return checked
end)(redis)
