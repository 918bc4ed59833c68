-- Keeps what was changed while apps run, with its history, and publishes each change to all instances. Apart from the script that
-- decides checks: this one is called rarely, and knows nothing of limits.
--
-- KEYS[1]  the hash of the rates that hold for all: a field is a limit's name
-- KEYS[2]  the hash of all other overrides: a field is a kind, a limit's name and a key, with a line feed between them. Its field
--          `version` is the number of the last change and its time in microseconds
-- KEYS[3]  the sorted set of fields of KEYS[2] that end, by when, in milliseconds
-- KEYS[4]  the list of changes, the oldest first. Each has the number and the time of the change, and the time of the one before it, by
--          which readers notice that the history they follow was lost: after a failover, or a restart from an older snapshot
--
-- The value of a field is a JSON object of
--   patch          the options that stand in for configured ones; null once it was cleared. Other kinds have another name for it
--   version        the number of the change that made it; grows with each change of the field
--   generation     grows by 1 with each reset, and stays when the override is cleared
--   inherit        what happens to what was counted: keep, proportional, additive, reset
--   expiresAt      the server's time in milliseconds at which the override ends, or null
--   quota          the limit's quota under the override
--   previousQuota  the quota before it
--   by, reason     where they were given
--
-- ARGV[1]  read: ARGV[2] and ARGV[3] are the number and the time of the last change that is known; -1 if none is
--          page: ARGV[2] is the cursor of a scan of KEYS[2]; with ARGV[3], fields are joined by it to one string, and values to another:
--          a client takes a long string apart in much less time than it reads a thousand short ones
--          set, try (as set, but only where nothing is in force), clear (only where something is), restore
-- ARGV[2]  for changes: the channel on which they are published
-- ARGV[3]  by and reason as members of a JSON object, each behind a comma
-- ARGV[4]  the longest list of changes
-- ARGV[5]  the number of the last change; if it is another one by now, nothing is changed. Empty to change it in any case
-- ARGV[6]  for restore: the change that is gone back to, as a member of a JSON object
-- then 9 for each override that changes:
--   1 or 2 for its hash; its field; kind, limit and key as members of a JSON object; the name of its value, and the value as JSON,
--   null to clear it; inherit; when it ends, as + and milliseconds from now, as a time, or null; its quota; the quota before it,
--   unless one is in force that says it
--
-- Reply    1 if something was changed, else 0; the server's time in milliseconds; the number and the time of the last change;
--          for read, the fields and values of KEYS[1], and the changes from the known one on, or none if these are not there;
--          for page, the next cursor, and fields and values, or their number, all fields and all values; for changes, the one that was made

local operation = ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function number(value) return string.format('%.0f', tonumber(value) or 0) end

local stamp = redis.call('HGET', KEYS[2], 'version') or ''
local version, at = string.match(stamp, '^(%d+) (%d+)$')
version, at = tonumber(version) or 0, tonumber(at) or 0

if operation == 'page' then
  local page = redis.call('HSCAN', KEYS[2], ARGV[2], 'COUNT', 1000)
  if not ARGV[3] then return { 0, now, version, number(at), page[1], page[2] } end
  local fields, values = {}, {}
  for index = 1, #page[2], 2 do
    fields[#fields + 1], values[#values + 1] = page[2][index], page[2][index + 1]
  end
  local joined = { table.concat(fields, ARGV[3]), table.concat(values, ARGV[3]) }
  return { 0, now, version, number(at), page[1], #fields, unpack(joined) }
end

if operation == 'read' then
  local known, changes = tonumber(ARGV[2]), {}
  local missed = version - known
  if known >= 0 and missed >= 0 and not (missed == 0 and at == tonumber(ARGV[3])) then
    changes = redis.call('LRANGE', KEYS[4], -1 - missed, -1)
  end
  return { 0, now, version, number(at), redis.call('HGETALL', KEYS[1]), changes }
end

local function read(hash, field)
  local json = redis.call('HGET', hash, field)
  local readable, record = pcall(cjson.decode, json or '{}')
  if not readable or type(record) ~= 'table' then return 'null', {} end
  return json or 'null', record
end

local function has_ended(record) return type(record.expiresAt) == 'number' and record.expiresAt <= now end

if ARGV[5] ~= '' and tonumber(ARGV[5]) ~= version then return { 0, now, version, number(at) } end

local changed, published = {}, {}
for index = 7, #ARGV, 9 do
  local hash, field, subject, name, value, inherit, ends, quota, previous = unpack(ARGV, index, index + 8)
  hash = KEYS[tonumber(hash)]
  local before, old = read(hash, field)
  local in_force = old[name] ~= nil and old[name] ~= cjson.null and not has_ended(old)
  if operation == 'set' or operation == 'restore' or in_force == (operation == 'clear') then
    local generation = (tonumber(old.generation) or 0) + (inherit == 'reset' and operation ~= 'restore' and 1 or 0)
    if string.sub(ends, 1, 1) == '+' then ends = number(now + tonumber(string.sub(ends, 2))) end
    if in_force and operation ~= 'restore' then previous = number(old.quota) end
    local after = '{"' .. name .. '":' .. value
      .. ',"version":' .. number(math.max(version + 1, (tonumber(old.version) or 0) + 1))
      .. ',"generation":' .. number(generation)
      .. ',"inherit":"' .. inherit
      .. '","expiresAt":' .. ends
      .. ',"quota":' .. quota
      .. ',"previousQuota":' .. previous .. ARGV[3] .. '}'
    local kept = hash == KEYS[1] or value ~= 'null' or generation > 0
    published[#published + 1] = '{' .. subject .. ',"before":' .. before .. ',"after":' .. (kept and after or 'null') .. '}'
    changed[#changed + 1] = { hash, field, kept and after, ends }
  end
end
if #changed == 0 then return { 0, now, version, number(at) } end

local previous_at = at
version, at = version + 1, time[1] * 1000000 + time[2]
local head = '{"version":' .. number(version) .. ',"at":' .. number(at) .. ',"previousAt":' .. number(previous_at)
  .. ARGV[3] .. ARGV[6] .. ',"changes":['
local change = head .. table.concat(published, ',') .. ']}'
-- Instances poll where this user may not publish, or Redis has no Pub/Sub. Long changes are read from the list.
redis.pcall('PUBLISH', ARGV[2], #published == 1 and change or head .. ']}')
for _, each in ipairs(changed) do
  local hash, field, json, ends = unpack(each)
  if json then redis.call('HSET', hash, field, json) else redis.call('HDEL', hash, field) end
  if hash == KEYS[2] then
    if json and ends ~= 'null' then redis.call('ZADD', KEYS[3], ends, field) else redis.call('ZREM', KEYS[3], field) end
  end
end
redis.call('HSET', KEYS[2], 'version', number(version) .. ' ' .. number(at))
-- The hash was lost and the list wasn't: the changes in it can't be undone.
if stamp == '' then redis.call('LTRIM', KEYS[4], 1, 0) end
redis.call('RPUSH', KEYS[4], change)
redis.call('LTRIM', KEYS[4], -tonumber(ARGV[4]), -1)

-- What has ended leaves the hash, but for the number of its resets.
for _, field in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, 100)) do
  local _, record = read(KEYS[2], field)
  if (tonumber(record.generation) or 0) == 0 then redis.call('HDEL', KEYS[2], field) end
  redis.call('ZREM', KEYS[3], field)
end
return { 1, now, version, number(at), change }
