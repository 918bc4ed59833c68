-- Keeps the rates that were changed while apps run, and tells all instances of each change. Apart from the script that
-- decides checks: this one is called rarely, and knows nothing of limits.
--
-- KEYS[1]  the hash of changed rates. A field is a limit's name, its value a JSON object of
--            patch          the options that stand in for configured ones; null once it was cleared
--            version        grows by 1 with each change
--            generation     grows by 1 with each reset, and stays when the patch is cleared
--            inherit        what happens to what was counted: keep, proportional, additive, reset
--            expiresAt      the server's time in milliseconds at which the patch ends, or null
--            quota          the limit's quota under the patch
--            previousQuota  the quota before it
-- ARGV[1]  read, set, try (as set, but only where no patch is in force) or clear
-- ARGV[2]  the channel that is told; this and all that follows is not for read
-- ARGV[3]  the limit's name
-- ARGV[4]  patch; null for clear
-- ARGV[5]  inherit
-- ARGV[6]  milliseconds until it ends, 0 for never
-- ARGV[7]  quota under the patch
-- ARGV[8]  quota as configured
-- Reply    1 if something was changed, else 0; the server's time in milliseconds; then each name and its JSON

local operation, channel, name, patch, inherit, lasts, quota, configured = unpack(ARGV)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local done = 0

if operation ~= 'read' then
  local readable, old = pcall(cjson.decode, redis.call('HGET', KEYS[1], name) or '{}')
  if not readable or type(old) ~= 'table' then old = {} end
  local in_force = type(old.patch) == 'table' and (type(old.expiresAt) ~= 'number' or old.expiresAt > now)
  if operation == 'set' or in_force == (operation == 'clear') then
    local function number(value) return string.format('%.0f', tonumber(value) or 0) end
    local generation = (tonumber(old.generation) or 0) + (inherit == 'reset' and 1 or 0)
    local expires = lasts == '0' and 'null' or number(now + lasts)
    -- Before the hash is written: a user who may not publish changes nothing.
    redis.call('PUBLISH', channel, name)
    redis.call('HSET', KEYS[1], name, '{"patch":' .. patch
      .. ',"version":' .. number((tonumber(old.version) or 0) + 1)
      .. ',"generation":' .. number(generation)
      .. ',"inherit":"' .. inherit
      .. '","expiresAt":' .. expires
      .. ',"quota":' .. quota
      .. ',"previousQuota":' .. (in_force and number(old.quota) or configured) .. '}')
    done = 1
  end
end

local reply = redis.call('HGETALL', KEYS[1])
table.insert(reply, 1, now)
table.insert(reply, 1, done)
return reply
