-- Reads the program up to its checks: the time and the limits; and the values of all keys.
--
-- Uses: beside, make_algorithm, make_feature, now, program, time_to_live_slack, values
-- Leaves: BLOCK, BLOCKED_FOR, CLAIM, CONSUME, CONSUME_EACH, CONSUME_REFUNDABLE, CONSUME_WAITING, CREDIT, HISTORY, HOLD, LEARN,
--   LEARN_RATE, NO_CARRY, OF_FEATURE, PEEK, PENALIZE, PROPORTIONAL, REFUND, RELEASE, RENEW, RESERVE, SETTLE, TOGETHER, UP_TO, feature_of, has_features, has_operations, is_varied, learns_or_claims, limits, position, states

local CONSUME, PEEK, REFUND, HISTORY, RESERVE, PENALIZE, BLOCK, RENEW = 0, 1, 2, 3, 4, 5, 6, 7
local CONSUME_REFUNDABLE, CONSUME_EACH, BLOCKED_FOR, LEARN, LEARN_RATE, CLAIM, RELEASE, SETTLE, HOLD = 8, 9, 10, 11, 12, 13, 14, 15, 16
local TOGETHER, CREDIT, UP_TO, CONSUME_WAITING, OF_FEATURE = 17, 18, 19, 20, 21
local NO_CARRY, PROPORTIONAL = 0, 1

-- Whether any limit of the call is met by requests from which a part of its quota is kept.
local is_varied = false

-- Whether any limit of the call has features.
local has_features = false

-- Whether the call has operations besides checks, and whether any of these learns or claims: what it does not need is not made.
local has_operations, learns_or_claims = program[1] < 0, program[1] < -1

-- The number that is read next.
local position = 5

now = program[2]
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
time_to_live_slack = program[3]

-- Only what the call needs is made: to make all algorithms takes longer than to decide a check.
local algorithms, features = {}, {}
local limits = {}

local function feature_of(name)
  features[name] = features[name] or make_feature(name)
  return features[name]
end

-- What a limit has of features, each its hooks and the numbers of the limit by their names.
local function read_features()
  local found = {}
  for i = 1, program[position] do
    local name = program[position + 1]
    local hooks = feature_of(name)
    local feature = setmetatable({ name = name }, { __index = hooks })
    for each, parameter in ipairs(hooks.parameters) do feature[parameter] = program[position + 1 + each] end
    position, found[i] = position + 1 + #hooks.parameters, feature
  end
  position = position + 1
  return found
end
for number = 1, program[4] do
  local name = program[position]
  -- A name behind an at sign is that of a limit with features.
  local featured = string.match(name, '^@(.*)')
  name, has_features = featured or name, has_features or featured ~= nil
  local algorithm = algorithms[name]
  if not algorithm then
    -- A name before a plus sign is that of a feature, whose variant of the algorithm counts.
    local feature, base = string.match(name, '^(.*)%+(.*)')
    algorithm = make_algorithm(base or name)
    if feature then
      local hooks = feature_of(feature)
      algorithm = hooks.variant(algorithm)
      for _, parameter in ipairs(hooks.parameters) do table.insert(algorithm.parameters, parameter) end
    end
    algorithms[name] = algorithm
  end
  local limit = {
    algorithm = algorithm,
    shadow = program[position + 1] % 2 == 1,
    strikes = program[position + 1] % 4 >= 2,
    counts_refused = program[position + 1] >= 4,
    quota = program[position + 2],
    block_for = program[position + 3],
    carry = program[position + 4],
    -- The length of a value without an envelope, where one state can serve counter after counter.
    plain_size = algorithm.reuses_state and program[position + 4] == NO_CARRY and algorithm.encoded_size,
    quota_before = program[position + 5],
    -- The state that was used last, if it can be used again, and room for parameters.
    reused = nil,
    unit = nil,
    speed = nil,
  }
  local parameters = algorithm.parameters
  position = position + 6
  for i = 1, program[position] do limit[parameters[i] or 'whole'] = program[position + i] end
  -- A part of the quota is kept from the requests of this limit: counters are read and written under all of it.
  if limit.whole then
    limit.opened = setmetatable({ quota = limit.whole }, { __index = limit })
    limit.plain_size = nil
  end
  is_varied = is_varied or limit.whole ~= nil
  position = position + 1 + program[position]
  if limit.block_for < 0 then
    local steps = {}
    for i = 1, -limit.block_for do steps[i] = program[position + i] end
    limit.steps, limit.block_for, limit.forget_after = steps, steps[1], program[position]
    position = position + 1 + #steps
  end
  if featured then
    limit.features, limit.plain_size = read_features(), nil
    for _, feature in ipairs(limit.features) do
      if feature.reserved then limit.estimates = feature end
      if feature.charged then limit.records = true end
    end
  end
  limits[number] = limit
end

-- Counters that stay open until the end of the call, by their keys: false until they are opened. All others are written as soon
-- as they are decided.
local states = {}
for i = 1, program[position] do states[program[position + i]] = false end
position = position + 1 + program[position]

-- Further keys and texts of counters, by the number of the counter's key and by name.
local beside_count = program[position]
position = position + 1
for _ = 1, beside_count do
  local number, name, size = program[position], program[position + 1], program[position + 2]
  beside[number] = beside[number] or {}
  beside[number][name] = { unpack(program, position + 3, position + 2 + size) }
  position = position + 3 + size
end

-- Strings only: MGET answers nil for a key of another type, and a fragment reads that one itself.
values = values or redis.call('MGET', unpack(KEYS))
