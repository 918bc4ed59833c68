-- What a region knows of its home: which history of that server it has heard of last, the number of that epoch, how many of its calls were
-- answered, and when the last answer came.
--
-- KEYS[1]  the hash
-- ARGV     the history, the epoch and the number of calls that an answer says; none only reads; then the milliseconds to keep the hash
-- Reply    1, or 0 if the answer is of a server whose place another one has taken; the history, the epoch, the number of calls, as texts;
--          milliseconds since the last answer, or -1; the history of the region's own server, as lua/features/regions.lua has it
local stored = redis.pcall('HMGET', KEYS[1], 'history', 'epoch', 'calls', 'at')
if stored.err then
  -- A value of another type tells as much as none.
  if not string.find(stored.err, 'WRONGTYPE') then error(stored.err, 0) end
  redis.call('DEL', KEYS[1])
  stored = {}
end
-- So does a word in the place of a number.
for i = 1, 4 do
  if not tonumber(stored[i] or nil) then stored[i] = nil end
end
local history, epoch, calls, at = stored[1] or '0', stored[2] or '0', stored[3] or '0', tonumber(stored[4] or nil)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local is_current = 1
if ARGV[1] then
  -- A home that failed twice may have given a number twice: the first one that is heard of has it, and the other one takes the next.
  local is_same = tonumber(ARGV[2]) == tonumber(epoch)
  if tonumber(ARGV[2]) < tonumber(epoch) or is_same and ARGV[1] ~= history then
    is_current = 0
  else
    history, epoch, at = ARGV[1], ARGV[2], now
    if tonumber(ARGV[3]) > tonumber(calls) then calls = ARGV[3] end
    redis.call('HSET', KEYS[1], 'history', history, 'epoch', epoch, 'calls', calls, 'at', string.format('%.0f', now))
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
  end
end
local id = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)') or '1'
return { is_current, history, epoch, calls, at and math.max(0, now - at) or -1, tonumber(string.sub(id, 1, 12), 16) }
