-- Counts a hit the way @nestjs/throttler counts it in memory, in one atomic call. lib/integrations/throttler-storage/hits.ts counts
-- alike in process. All times are in milliseconds.
--
-- KEYS[1]  the hits: a list. Its first value holds when the reported window ends, when the block ends (0: no block) and until when the key
--          lives, joined by colons; the others hold when each hit expires, in ascending order
-- ARGV     how long a hit counts; the limit; how long a block lasts (0: none, and what is rejected doesn't count); what is added to the
--          time to live; the time now, or 0 for the server's clock
-- Reply    hits, the one that is being rejected included; time until the window ends; 1 if blocked, else 0; time until the next hit can
--          be allowed
local ttl, limit, block, slack, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

local head = redis.pcall('LRANGE', KEYS[1], 0, 1)
-- A value of another type is treated as no value.
if head.err and not string.find(head.err, 'WRONGTYPE') then error(head.err, 0) end
local ends, first = head[1], tonumber(head[2] or nil)
local window_end, block_end, lives_until = string.match(ends or '', '^(%d+):(%d+):(%d+)$')
window_end, block_end, lives_until = tonumber(window_end), tonumber(block_end), tonumber(lives_until)

local function clear()
  redis.call('DEL', KEYS[1])
  redis.call('RPUSH', KEYS[1], '')
  ends, lives_until = '', 0
end

local function expiry_at(index) return tonumber(redis.call('LINDEX', KEYS[1], index) or nil) end

if window_end then
  if first and first <= now then
    redis.call('LPOP', KEYS[1])
    repeat
      redis.call('LPOP', KEYS[1])
      first = expiry_at(0)
    until not first or first > now
    redis.call('LPUSH', KEYS[1], ends)
    -- An empty list is deleted, so it has no time to live any more.
    if not first then lives_until = 0 end
  end
else
  clear()
  window_end, block_end, first = 0, 0, nil
end
if window_end <= now then window_end = now + ttl end

local longest = 0

-- Returns how many hits there are then.
local function add()
  local expiry, text, last = now + ttl, string.format('%.0f', now + ttl), expiry_at(-1) or 0
  longest = math.max(expiry, last)
  if expiry >= last then return redis.call('RPUSH', KEYS[1], text) - 1 end
  -- Hits counted for longer before.
  for _, other in ipairs(redis.call('LRANGE', KEYS[1], 1, -1)) do
    if tonumber(other) > expiry then return redis.call('LINSERT', KEYS[1], 'BEFORE', other, text) - 1 end
  end
end

local hits, is_blocked, blocked_until
if block <= 0 then
  hits = redis.call('LLEN', KEYS[1]) - 1
  is_blocked, blocked_until = hits >= limit, first or window_end
  if is_blocked then hits = hits + 1 else hits = add() end
else
  if block_end > 0 and block_end <= now then
    clear()
    block_end = 0
  end
  if block_end == 0 then
    hits = add()
    if hits > limit then block_end = now + block end
  else
    hits = redis.call('LLEN', KEYS[1]) - 1
  end
  is_blocked, blocked_until = block_end > 0, block_end
end

longest = math.max(longest, window_end, block_end)
if longest > lives_until then
  -- Not each hit has to lengthen the life of the key.
  lives_until = longest + math.floor(ttl / 2)
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', lives_until - now + slack))
end
local new_ends = string.format('%.0f:%.0f:%.0f', window_end, block_end, lives_until)
if new_ends ~= ends then redis.call('LSET', KEYS[1], 0, new_ends) end
return { hits, window_end - now, is_blocked and 1 or 0, is_blocked and blocked_until - now or 0 }
