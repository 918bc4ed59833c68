-- Runs the program: looks at all limits of a check first, then charges all of them or none.

local CONSUME, REFUND, HISTORY = 0, 2, 3

local program = cjson.decode(ARGV[1])
local now, at = program[1], 4
time_to_live_slack = program[2]
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

local limits = {}
for i = 1, program[3] do
  local p = { algorithm = algorithms[program[at]], shadow = program[at + 1] == 1, quota = program[at + 2] }
  local length = program[at + 3]
  for j = 1, length do p[j] = program[at + 3 + j] end
  at = at + 4 + length
  limits[i] = p
end

-- Strings only: MGET answers nil for a key of another type, and a fragment reads that one itself.
local raw = redis.call('MGET', unpack(KEYS))

-- A key's state as of now, read once a call and written once, after the last check.
local states, owners, changed = {}, {}, {}

local function save(key)
  owners[key].algorithm.save(owners[key], states[key], KEYS[key])
  changed[key] = nil
end

local function open(p, key)
  if owners[key] == p then return states[key] end
  if owners[key] then
    -- The same counter under other parameters: they find what the first ones leave.
    if changed[key] then save(key) end
    raw[key] = redis.call('MGET', KEYS[key])[1]
  end
  local readable, s = pcall(p.algorithm.open, p, raw[key], now, KEYS[key])
  if not readable then
    -- Not what a counter stores: it counts as none, and does not fail the other checks of the call.
    redis.call('DEL', KEYS[key])
    s = p.algorithm.open(p, nil, now, KEYS[key])
  end
  if s then owners[key], states[key] = p, s end
  return s
end

local reply, size = {}, 0

local function add(value)
  size = size + 1
  reply[size] = value
end

local function answer(p, s, cost, fits, delay, place)
  local algorithm = p.algorithm
  local reset = ceil(algorithm.reset(p, s) / 1000) * 4
  if not fits then
    add(reset)
    add(algorithm.remaining(p, s))
    add(cost > p.quota and -1 or ceil(algorithm.retry(p, s, cost) / 1000))
  elseif place then
    add(reset + 2)
    add(algorithm.remaining(p, s))
    add(ceil(delay / 1000))
    add(place)
  else
    add(reset + 1)
    add(algorithm.remaining(p, s))
  end
end

local opened, fitting = {}, {}

local function decide(consume, count, from)
  local allowed = true
  for i = 1, count do
    local entry = from + (i - 1) * 3
    local p, cost = limits[program[entry]], program[entry + 2]
    local s = open(p, program[entry + 1])
    if not s then
      add(-1)
      return add(now)
    end
    local fits = cost <= p.quota and p.algorithm.fits(p, s, cost)
    opened[i], fitting[i] = s, fits
    allowed = allowed and (fits or p.shadow)
  end
  for i = 1, count do
    local entry = from + (i - 1) * 3
    local p, key, cost = limits[program[entry]], program[entry + 1], program[entry + 2]
    local s, fits, delay, place = opened[i], fitting[i], nil, nil
    if fits and p.algorithm.delay then delay, place = p.algorithm.delay(p, s, cost) end
    if consume and allowed and fits then
      p.algorithm.take(p, s, cost)
      changed[key] = true
    elseif consume and s.moved then
      changed[key] = true
    end
    answer(p, s, cost, fits, delay, place)
  end
end

local function refund(p, key, units, place)
  local s = open(p, key)
  if s then
    p.algorithm.give(p, s, units, place)
    changed[key] = true
  end
end

local function history(p, key)
  local s = open(p, key)
  if not s then
    add(-1)
    return add(now)
  end
  local windows = p.algorithm.history(p, s, KEYS[key])
  add(#windows / 3)
  for _, value in ipairs(windows) do add(value) end
end

while program[at] do
  local operation, count = program[at], program[at + 1]
  at = at + 2
  if operation == REFUND then
    for _ = 1, count do
      refund(limits[program[at]], program[at + 1], program[at + 2], program[at + 3])
      at = at + 4
    end
  elseif operation == HISTORY then
    history(limits[program[at]], program[at + 1])
    at = at + 2
  else
    decide(operation == CONSUME, count, at)
    at = at + 3 * count
  end
end

for key in pairs(changed) do save(key) end

return reply
