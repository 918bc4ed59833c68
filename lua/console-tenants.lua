-- Reads what tenants have of a counter whose units they share, as `lua/features/shares.lua` stores it. Writes nothing.
-- KEYS: what the tenants have in common
-- ARGV: the most tenants
-- Returns JSON: the numbers that all have in common, and of each tenant its name, the number of the slice in which it asked last, its
-- weight, the units that it is expected to use, and those that it used in each slice; or false if there are none
local stored = redis.call('GET', KEYS[1])
if not stored then return false end
local readable, sums, leaders, used = pcall(cmsgpack.unpack, stored)
if not readable or not leaders or not used then return false end
local tenants, ages = {}, #used / #leaders * 4
for i = 1, math.min(#leaders / 4, tonumber(ARGV[1])) do
  tenants[i] = { leaders[4 * i - 3], leaders[4 * i - 2], leaders[4 * i - 1], leaders[4 * i], unpack(used, (i - 1) * ages + 1, i * ages) }
end
return cjson.encode({ sums, tenants })
