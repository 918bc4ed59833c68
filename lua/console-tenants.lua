-- Reads what tenants have of a counter whose units they share, as `lua/features/shares.lua` stores it. Writes nothing.
-- KEYS: the counter's key with `:shares` behind it
-- ARGV: the counter's key, and the most tenants
-- Returns JSON: the numbers that all have in common, and of each tenant its name and its own numbers; or false if there are none
local stored = redis.call('GET', KEYS[1])
if not stored then return false end
local readable, sums, leaders = pcall(cmsgpack.unpack, stored)
if not readable or not leaders then return false end
local tenants = {}
for at = 1, math.min(#leaders, 4 * tonumber(ARGV[2])), 4 do
  local value = redis.call('GET', ARGV[1] .. ':share:' .. leaders[at])
  local known, numbers = pcall(cmsgpack.unpack, value or '')
  tenants[#tenants + 1] = { leaders[at], known and type(numbers) == 'table' and numbers or {} }
end
return cjson.encode({ sums, tenants })
