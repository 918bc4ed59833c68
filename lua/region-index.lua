-- The counters of a region that may hold units, and the instances that look after them: whoever comes later gives back what others left.
--
-- KEYS[1]  the counters: a sorted set, by when an instance last looked after them, in milliseconds
-- KEYS[2]  the instances: a sorted set, by when they last said so
-- ARGV     what is done, then:
--   'note'   the instance, how many counters are kept at most, milliseconds to keep the keys, and counters that it looks after. Replies 1
--   'left'   milliseconds, how many at most: replies the counters that nobody has looked after for so long, each with when somebody did
--   'has'    a counter. Replies 1 if somebody has looked after it, else 0
--   'drop'   counters, each with that time: forgets those that nobody has looked after since. Replies how many
--   'leave'  as 'note', but after the third: milliseconds after which instances count as gone, those after which counters do, and
--            counters that it looked after: others have until then to look after them, too. Replies how many other instances are there
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function call(...)
  local reply = redis.pcall(...)
  if type(reply) ~= 'table' or not reply.err then return reply end
  -- A value of another type tells as much as none.
  if not string.find(reply.err, 'WRONGTYPE') then error(reply.err, 0) end
  redis.call('DEL', KEYS[1], KEYS[2])
  return redis.call(...)
end

-- Counters that find no room come back when they are asked for again, or when they lapse.
local function add(score, from, most, kept_for)
  local condition = call('ZCOUNT', KEYS[1], '-inf', '+inf') >= tonumber(most) and 'XX'
  for first = from, #ARGV, 500 do
    local scored = {}
    for i = first, math.min(first + 499, #ARGV) do
      scored[#scored + 1], scored[#scored + 2] = score, ARGV[i]
    end
    if condition then call('ZADD', KEYS[1], condition, unpack(scored)) else call('ZADD', KEYS[1], unpack(scored)) end
  end
  for i = 1, 2 do redis.call('PEXPIRE', KEYS[i], kept_for) end
end

local steps = {}

function steps.note(instance, most, kept_for)
  call('ZADD', KEYS[2], now, instance)
  add(now, 5, most, kept_for)
  return 1
end

function steps.left(age, most)
  return call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%.0f', now - age), 'WITHSCORES', 'LIMIT', 0, most)
end

function steps.has(counter) return call('ZSCORE', KEYS[1], counter) and 1 or 0 end

function steps.drop()
  local dropped = 0
  for i = 2, #ARGV, 2 do
    if call('ZSCORE', KEYS[1], ARGV[i]) == ARGV[i + 1] then dropped = dropped + call('ZREM', KEYS[1], ARGV[i]) end
  end
  return dropped
end

function steps.leave(instance, most, kept_for, gone_after, left_after)
  call('ZREM', KEYS[2], instance)
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now - gone_after))
  add(string.format('%.0f', now - left_after), 7, most, kept_for)
  return call('ZCOUNT', KEYS[2], '-inf', '+inf')
end

return steps[ARGV[1]](unpack(ARGV, 2, 6))
