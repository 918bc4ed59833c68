-- Counts a hit the way @nestjs/throttler counts it in memory, in one atomic call. lib/integrations/throttler-storage/local-hits.ts is the
-- twin in process. All times are in milliseconds.
--
-- KEYS[1]  the hits: a list. Its first value holds when the reported window ends and when the block ends (0: no block), joined by a
--          colon; the others hold when each hit expires, in ascending order
-- ARGV     how long a hit counts; the limit; how long a block lasts (0: none, and what is rejected doesn't count); what is added to the
--          time to live; the time now, or 0 for the server's clock
-- Reply    hits, the one that is being rejected included; time until the window ends; 1 if blocked, else 0; time until the next hit can
--          be allowed
local ttl, limit, block, slack, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

local ends = redis.pcall('LPOP', KEYS[1])
-- A value of another type is treated as no value.
if type(ends) == 'table' and not string.find(ends.err, 'WRONGTYPE') then error(ends.err, 0) end
local window_end, block_end = string.match(type(ends) == 'string' and ends or '', '^(%d+):(%d+)$')
if not window_end and ends then redis.call('DEL', KEYS[1]) end
window_end, block_end = tonumber(window_end) or 0, tonumber(block_end) or 0

local function expiry_at(index)
  local expiry = redis.call('LINDEX', KEYS[1], index)
  return expiry and (tonumber(expiry) or 0)
end

local first = expiry_at(0)
while first and first <= now do
  redis.call('LPOP', KEYS[1])
  first = expiry_at(0)
end
local hits = redis.call('LLEN', KEYS[1])
local last = first and expiry_at(-1) or 0

local function add()
  local expiry, text = now + ttl, string.format('%.0f', now + ttl)
  hits = hits + 1
  if expiry >= last then
    last = expiry
    redis.call('RPUSH', KEYS[1], text)
    return
  end
  -- Hits counted for longer before.
  for _, other in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
    if tonumber(other) > expiry then
      redis.call('LINSERT', KEYS[1], 'BEFORE', other, text)
      return
    end
  end
end

if window_end <= now then window_end = now + ttl end
local total, is_blocked, blocked_until = 0, false, now
if block <= 0 then
  is_blocked = hits >= limit
  if is_blocked then
    total, blocked_until = hits + 1, first or window_end
  else
    add()
    total = hits
  end
else
  if block_end > 0 and block_end <= now then
    redis.call('DEL', KEYS[1])
    hits, last, block_end = 0, 0, 0
  end
  if block_end == 0 then
    add()
    if hits > limit then block_end = now + block end
  end
  total, is_blocked = hits, block_end > 0
  if is_blocked then blocked_until = block_end end
end

redis.call('LPUSH', KEYS[1], string.format('%.0f:%.0f', window_end, block_end))
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(window_end, block_end, last) - now + slack))
return { total, window_end - now, is_blocked and 1 or 0, blocked_until - now }
