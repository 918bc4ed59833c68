-- Adds counts of an ended instance to the sum of all ended ones, unless it has reported meanwhile, or the sum has changed.
-- KEYS: its index, seen, folds, folded, the sum, then the instance's hashes
-- ARGV: its id, its score in the index, folds, the id of the sum, the sum's time to live, the number of old fields, these fields,
-- then fields and values of the sum; or 'end' in place of a time to live
local index, seen, folds, folded, sum = unpack(KEYS)
local id, score, expected, ended, live = unpack(ARGV)
if redis.call('ZSCORE', index, id) ~= score then return 0 end
if (redis.call('GET', folds) or '0') ~= expected then return 0 end
if live == 'end' then
  redis.call('ZREM', index, id)
  redis.call('ZREM', seen, id)
  for at = 6, #KEYS do redis.call('DEL', KEYS[at]) end
  return 1
end
local old = tonumber(ARGV[6])
if old > 0 then redis.call('HDEL', sum, unpack(ARGV, 7, 6 + old)) end
for at = 7 + old, #ARGV, 2 do
  redis.call('HSET', sum, ARGV[at], ARGV[at + 1])
  redis.call('HDEL', KEYS[6], ARGV[at])
end
redis.call('EXPIRE', sum, live)
redis.call('SET', folds, string.format('%.0f', expected + 1), 'EX', 3000000)
redis.call('SET', folded, score, 'EX', 172800)
if tonumber(redis.call('ZSCORE', seen, ended) or '0') < tonumber(score) then redis.call('ZADD', seen, score, ended) end
return 1
