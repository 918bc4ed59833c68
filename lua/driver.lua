-- Runs the program: looks at all limits of a check first, then charges all of them or none.

local CONSUME, PEEK, REFUND, HISTORY, RESERVE, PENALIZE, BLOCK, RENEW = 0, 1, 2, 3, 4, 5, 6, 7
local CONSUME_REFUNDABLE, CONSUME_EACH = 8, 9
local NO_CARRY, PROPORTIONAL = 0, 1

local program = cjson.decode(ARGV[1])
local now, at = program[1], 4
time_to_live_slack = program[2]
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- Only what the call needs is made: to make all algorithms takes longer than to decide a check.
local made = {}

local function algorithm_of(name)
  local algorithm = made[name] or algorithms[name]()
  made[name] = algorithm
  return algorithm
end

local limits = {}
for i = 1, program[3] do
  local length = program[at + 6]
  limits[i] = {
    algorithm = algorithm_of(program[at]),
    shadow = program[at + 1] == 1,
    quota = program[at + 2],
    block_for = program[at + 3],
    carry = program[at + 4],
    quota_before = program[at + 5],
    unpack(program, at + 7, at + 6 + length),
  }
  at = at + 7 + length
end

-- Strings only: MGET answers nil for a key of another type, and a fragment reads that one itself.
local raw = redis.call('MGET', unpack(KEYS))

-- A key's state as of now, read once a call and written once, after the last check.
local states, owners, changed = {}, {}, {}

local BLOCKED, CARRIED = 255, 254

-- Whether a value begins with a mark. The first byte of a number may be any, so its length tells: that of a plain value is
-- always the same, or 8 divides it, and it does not that of a marked one.
local function is_marked(value, mark, algorithm)
  if string.byte(value) ~= mark then return false end
  if algorithm.size then return #value ~= algorithm.size end
  return algorithm.packed or #value % 8 > 0
end

-- What stands before a value: until when the counter is blocked and for how long, and the quota that its units are for.
local function unwrapped(value, algorithm)
  local stop, duration, quota
  if is_marked(value, BLOCKED, algorithm) then
    if #value < 17 then return nil end
    stop, duration = unpack_doubles('<dd', value, 2)
    value = string.sub(value, 18)
  end
  if is_marked(value, CARRIED, algorithm) then
    if #value < 9 then return nil end
    quota = unpack_doubles('<d', value, 2)
    value = string.sub(value, 10)
  end
  return value ~= '' and value, stop, duration, quota
end

-- The state of a counter some of whose units were left under a smaller quota. Under a smaller one nobody owes less: those who
-- still decide by the larger one would find it as room.
local function carry_over(p, value, key, quota)
  if p.algorithm.renew or quota >= p.quota then return p.algorithm.open(p, value, now, key) end
  local before = setmetatable({ quota = quota }, { __index = p })
  local s = p.algorithm.open(before, value, now, key)
  if not s then return s end
  local left = p.algorithm.remaining(before, s)
  local proportional = p.carry == PROPORTIONAL and left >= 0
  if s.burst then s.burst = max(s.burst, p.quota) end
  if proportional and p.algorithm.scale_used then
    p.algorithm.scale_used(p, s, p.quota, quota)
    s.moved = true
    return s
  end
  local used, more = quota - left, 0
  if left < 0 then
    -- Who owes owes as much as before.
    more = p.quota - quota
  elseif proportional then
    more = in_proportion(used, p.quota, quota) - used
  end
  if more > 0 then
    p.algorithm.take(p, s, more)
    s.moved = true
  end
  return s
end

-- Refuses a counter until a time, which ends the block of before.
local function set_block(s, stop, duration)
  s.blocked = stop > s.now and stop or nil
  s.blocked_for = duration
  s.block_changed = true
end

-- Begins the block of a check that is refused. The counter begins anew when it ends: what was used is forgotten at once. What is
-- still to come stays: leases that are held, places in a queue, and what is owed beyond the quota. If the same check would
-- have to wait longer for that, the block lasts as long, so that nothing that is asked meanwhile lengthens its wait.
local function begin_block(p, s, cost)
  local algorithm, duration = p.algorithm, p.block_for
  if not algorithm.delay then algorithm.give(p, s, min(p.quota, p.quota - algorithm.remaining(p, s)), -1, -1) end
  if cost <= p.quota and not algorithm.renew and not algorithm.fits(p, s, cost) then
    duration = max(duration, algorithm.retry(p, s, cost))
  end
  set_block(s, now + duration, duration)
end

-- The state of a counter as it is in Redis. A value that has its algorithm's length is neither blocked nor carried over.
local function read(p, key)
  local size = p.algorithm.size
  if size and p.carry == NO_CARRY then
    local value = raw[key]
    if not value or #value == size then return p.algorithm.open(p, value, now, KEYS[key]) end
  end
  local value, stop, duration, quota = raw[p.algorithm.apart and key + 1 or key], nil, nil, nil
  if value then value, stop, duration, quota = unwrapped(value, p.algorithm) end
  if value and size and #value ~= size then value = nil end
  local carried_to = quota
  quota = quota or p.quota_before
  local s
  if p.carry == NO_CARRY or quota == p.quota or not (value or p.algorithm.apart) then
    s = p.algorithm.open(p, value, now, KEYS[key])
  else
    s = carry_over(p, value, KEYS[key], quota)
  end
  if s then s.carried_to = carried_to end
  if s and stop and stop > now then
    -- If the clock was set back, the block ends no later than if it had just begun.
    s.blocked, s.blocked_for = min(stop, now + duration), duration
    if s.blocked < stop then s.moved, s.block_changed = true, true end
  elseif s and stop then
    -- What is stored next stands without a block that is over, also if the clock steps back again.
    s.block_changed = true
  end
  return s
end

local function save(key)
  local p, s = owners[key], states[key]
  local stored_block, stored_block_for = '', 0
  if s.blocked then
    stored_block = string.char(BLOCKED) .. pack('<dd', s.blocked, s.blocked_for)
    stored_block_for = s.blocked - s.now
  end
  -- What was carried over is not carried over again, whoever charges it meanwhile.
  local carried_to = p.carry ~= NO_CARRY and p.quota or s.carried_to
  carried = carried_to and string.char(CARRIED) .. pack('<d', carried_to) or ''
  block, block_for = stored_block, stored_block_for
  if p.algorithm.apart then
    if carried ~= '' then
      put(KEYS[key + 1], '', p.algorithm.reset(p, s))
    elseif s.block_changed then
      put(KEYS[key + 1], '', 0)
    end
  end
  p.algorithm.save(p, s, KEYS[key])
  changed[key] = nil
end

-- Whether what failed is the value: it has another type, or does not hold what its fragment unpacks. Else, as where the user
-- may not run a command, nothing is known of the value, and it must not be lost.
local function is_of_value(problem)
  return string.find(problem, '^WRONGTYPE') or string.find(problem, '^user_script:%d+:')
end

local function open(p, key)
  local known = states[key]
  -- What has been changed back to a fresh state is one for whatever follows, in this call as in the next.
  if owners[key] == p and not (changed[key] and p.algorithm.reset(p, known) <= 0) then return known end
  if known then
    -- Or the same counter under other parameters: they find what the first ones leave.
    if changed[key] then save(key) end
    raw[key] = redis.call('MGET', KEYS[key])[1]
    if p.algorithm.apart then raw[key + 1] = redis.call('MGET', KEYS[key + 1])[1] end
  end
  local readable, s = true, nil
  if p.algorithm.size then s = read(p, key) else readable, s = pcall(read, p, key) end
  if not readable then
    if not is_of_value(s) then error(s, 0) end
    -- Not what a counter stores: it counts as none, and does not fail the other checks of the call.
    redis.call('DEL', KEYS[key])
    raw[key] = nil
    if p.algorithm.apart then
      redis.call('DEL', KEYS[key + 1])
      raw[key + 1] = nil
    end
    s = read(p, key)
  end
  if s then owners[key], states[key] = p, s end
  return s
end

-- Makes a counter that refused live as long as its wait. It was stored under parameters by which it may be fresh sooner. Once
-- in a call is enough for what has been `seen`: a value, or a state.
local seen_last, seen_by = {}, {}

local function keep_alive(key, micros)
  if micros > (redis.call('PTTL', key) + 1) * 1000 then redis.call('PEXPIRE', key, time_to_live(micros)) end
end

local function live_on(p, s, key, seen)
  if seen_last[key] == seen and seen_by[key] == p then return end
  seen_last[key], seen_by[key] = seen, p
  local micros = p.algorithm.lives(p, s)
  if micros <= 0 then return end
  keep_alive(KEYS[key], micros)
  if p.algorithm.apart and s.carried_to then keep_alive(KEYS[key + 1], micros) end
end

local reply, size = {}, 0

local function add(value)
  size = size + 1
  reply[size] = value
end

-- Waits beyond this, 36,000 years, are all the same, and a reply stays a whole number for every client.
local LONGEST = 2 ^ 50

local function milliseconds(micros) return min(ceil(micros / 1000), LONGEST) end

-- The wait until a cost fits that does not fit now.
local function wait(p, s, cost)
  if cost > p.quota then return -1 end
  local micros = p.algorithm.fits(p, s, cost) and 0 or p.algorithm.retry(p, s, cost)
  if s.blocked then micros = max(micros, s.blocked - s.now) end
  return milliseconds(micros)
end

local function answer(p, s, cost, fits, delay, place)
  local reset = p.algorithm.reset(p, s)
  local remaining = max(0, p.algorithm.remaining(p, s))
  if s.blocked then
    reset = max(reset, s.blocked - s.now)
    remaining = 0
  end
  reset = milliseconds(reset) * 4
  if not fits then
    add(reset)
    add(remaining)
    add(delay and milliseconds(delay) or wait(p, s, cost))
  elseif place then
    add(reset + 2)
    add(remaining)
    add(milliseconds(delay))
    add(place)
  else
    add(reset + 1)
    add(remaining)
  end
end

-- Whether units can be had within the longest wait, and how long they have to be waited for.
local function reserve(p, s, cost, longest)
  if cost > p.quota or s.blocked then return false end
  local algorithm = p.algorithm
  if algorithm.delay then
    if not algorithm.fits(p, s, cost) then return false end
    local delay = algorithm.delay(p, s, cost)
    return delay <= longest, delay
  end
  if algorithm.fits(p, s, cost) then return true, 0 end
  if not algorithm.covered then return false end
  local delay = algorithm.retry(p, s, cost)
  return delay <= longest and algorithm.owable(p, s, cost), delay
end

-- The entries of the check that is being decided: limit, key, cost, the longest wait.
local entry_limits, entry_keys, entry_costs, entry_waits = {}, {}, {}, {}
local opened, fitting, delays = {}, {}, {}

local function decide(operation, count)
  local allowed = true
  for i = 1, count do
    local p, cost = entry_limits[i], entry_costs[i]
    local s = open(p, entry_keys[i])
    if not s then
      add(-1)
      return add(now)
    end
    local fits, delay
    if operation == RESERVE then
      fits, delay = reserve(p, s, cost, entry_waits[i])
    else
      fits = cost <= p.quota and not s.blocked and p.algorithm.fits(p, s, cost)
    end
    opened[i], fitting[i], delays[i] = s, fits, delay
    allowed = allowed and (fits or p.shadow)
  end
  for i = 1, count do
    local p, key, cost = entry_limits[i], entry_keys[i], entry_costs[i]
    local s, fits, delay, place = opened[i], fitting[i], delays[i], nil
    if fits and p.algorithm.delay then delay, place = p.algorithm.delay(p, s, cost) end
    if operation ~= PEEK then
      if allowed and fits then
        p.algorithm.take(p, s, cost)
        changed[key] = true
        if operation == RESERVE and p.algorithm.covered then place = p.algorithm.covered(p, s) end
      elseif s.moved then
        changed[key] = true
      elseif not fits and p.algorithm.lives and not changed[key] then
        live_on(p, s, key, s)
      end
      if not fits and operation ~= RESERVE and p.block_for > 0 and not s.blocked then
        begin_block(p, s, cost)
        changed[key] = true
      end
    end
    answer(p, s, cost, fits, delay, place)
  end
  if operation >= RESERVE then add(now) end
end

-- Whether a limit's counters are as most are: one plain value each, and neither blocked, nor carried over, nor delayed.
local function is_plain(p)
  local algorithm = p.algorithm
  return algorithm.raw and p.carry == NO_CARRY and p.block_for == 0 and not algorithm.delay and not algorithm.lives
end

-- Whether the values of a check are plain, and none of its keys is in use in this call.
local function holds_plain(count, key)
  for i = 1, count do
    local value = raw[key]
    if states[key] or (value and #value ~= entry_limits[i].algorithm.size) then return false end
    key = key + 1
  end
  return true
end

-- As decide, but with tables that are used again, and each key is written at once.
local spare = {}

local function decide_plainly(count, key)
  local allowed = true
  for i = 1, count do
    local p, cost = entry_limits[i], entry_costs[i]
    local algorithm = p.algorithm
    local s = algorithm.open(p, raw[key + i - 1], now, nil, spare[i])
    if not s then
      add(-1)
      return add(now)
    end
    local fits = cost <= p.quota and algorithm.fits(p, s, cost)
    spare[i], fitting[i] = s, fits
    allowed = allowed and (fits or p.shadow)
  end
  for i = 1, count do
    local p, s, cost, fits = entry_limits[i], spare[i], entry_costs[i], fitting[i]
    local algorithm = p.algorithm
    local taken = allowed and fits
    if taken then algorithm.take(p, s, cost) end
    local reset = algorithm.reset(p, s)
    if taken or s.moved then
      local value
      if reset > 0 then
        value = algorithm.raw(p, s)
        redis.call('SET', KEYS[key], value, 'PX', time_to_live(reset))
      else
        redis.call('DEL', KEYS[key])
      end
      raw[key] = value
    end
    if fits then
      reply[size + 1] = milliseconds(reset) * 4 + 1
      reply[size + 2] = max(0, algorithm.remaining(p, s))
      size = size + 2
    else
      answer(p, s, cost, false)
    end
    key = key + 1
  end
end

-- One check of one limit, as most are: it is its own judge.
local function decide_alone(p, key, cost)
  local s = open(p, key)
  if not s then
    add(-1)
    return add(now)
  end
  local algorithm = p.algorithm
  local fits, delay, place = cost <= p.quota and not s.blocked and algorithm.fits(p, s, cost), nil, nil
  if fits then
    if algorithm.delay then delay, place = algorithm.delay(p, s, cost) end
    algorithm.take(p, s, cost)
    changed[key] = true
  else
    if s.moved then
      changed[key] = true
    elseif algorithm.lives and not changed[key] then
      live_on(p, s, key, s)
    end
    if p.block_for > 0 and not s.blocked then
      begin_block(p, s, cost)
      changed[key] = true
    end
  end
  answer(p, s, cost, fits, delay, place)
end

-- The same of many plain counters: as decide_plainly.
local function decide_alone_plainly(times, p, key, step, cost)
  local algorithm = p.algorithm
  local length, open_plain, fits, take = algorithm.size, algorithm.open, algorithm.fits, algorithm.take
  local reset_of, remaining, raw_of = algorithm.reset, algorithm.remaining, algorithm.raw
  local possible, s = cost <= p.quota, nil
  for _ = 1, times do
    local value = raw[key]
    if states[key] or (value and #value ~= length) then
      decide_alone(p, key, cost)
    else
      s = open_plain(p, value, now, nil, s)
      local taken = possible and fits(p, s, cost)
      if taken then take(p, s, cost) end
      local reset = reset_of(p, s)
      if taken or s.moved then
        value = nil
        if reset > 0 then
          value = raw_of(p, s)
          redis.call('SET', KEYS[key], value, 'PX', time_to_live(reset))
        else
          redis.call('DEL', KEYS[key])
        end
        raw[key] = value
      end
      if taken then
        reply[size + 1] = milliseconds(reset) * 4 + 1
        reply[size + 2] = max(0, remaining(p, s))
        size = size + 2
      else
        answer(p, s, cost, false)
      end
    end
    key = key + step
  end
end

-- Checks of the same limits and costs. The keys of each follow each other.
local function decide_each(times, count, key, step)
  local plain = step >= count
  for i = 1, count do plain = plain and is_plain(entry_limits[i]) end
  if count == 1 then
    local p, cost = entry_limits[1], entry_costs[1]
    if plain then return decide_alone_plainly(times, p, key, step, cost) end
    for _ = 1, times do
      decide_alone(p, key, cost)
      key = key + step
    end
    return
  end
  for _ = 1, times do
    if plain and holds_plain(count, key) then
      decide_plainly(count, key)
    else
      for i = 1, count do entry_keys[i] = key + i - 1 end
      decide(CONSUME, count)
    end
    key = key + step
  end
end

local operations

local function make_operations()
  return {
    [REFUND] = function(p, s, key, units, place, charged)
      p.algorithm.give(p, s, units, place, charged)
      changed[key] = true
      add(1)
    end,

    [PENALIZE] = function(p, s, key, units)
      p.algorithm.take(p, s, max(0, min(units, p.quota + p.algorithm.remaining(p, s))))
      changed[key] = true
      add(1)
    end,

    [BLOCK] = function(p, s, key, duration)
      set_block(s, now + duration, duration)
      changed[key] = true
      add(1)
    end,

    [RENEW] = function(p, s, key, units, place)
      local held = p.algorithm.renew and p.algorithm.renew(p, s, units, place)
      if held then changed[key] = true end
      add(held and 1 or 0)
    end,

    [HISTORY] = function(p, s, key)
      local windows = p.algorithm.history(p, s, KEYS[key])
      add(#windows / 3)
      for _, value in ipairs(windows) do add(value) end
    end,
  }
end

local function operate(operation, p, key, first, second, third)
  local s = open(p, key)
  operations = operations or make_operations()
  if s then return operations[operation](p, s, key, first, second, third) end
  add(-1)
  add(now)
end

while program[at] do
  local operation, count = program[at], program[at + 1]
  at = at + 2
  if operation == CONSUME_EACH then
    local times, key, step = program[at], program[at + 1], program[at + 2]
    at = at + 3
    for i = 1, count do
      entry_limits[i], entry_costs[i] = limits[program[at]], program[at + 1]
      at = at + 2
    end
    decide_each(times, count, key, step)
  elseif operation <= PEEK or operation == RESERVE or operation == CONSUME_REFUNDABLE then
    for i = 1, count do
      entry_limits[i], entry_keys[i], entry_costs[i] = limits[program[at]], program[at + 1], program[at + 2]
      at = at + 3
      if operation == RESERVE then
        entry_waits[i] = program[at]
        at = at + 1
      end
    end
    decide(operation, count)
  else
    operate(operation, limits[program[at]], program[at + 1], program[at + 2], program[at + 3], program[at + 4])
    at = at + 5
  end
end

for key in pairs(changed) do save(key) end

return reply
