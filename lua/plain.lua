-- The fast way. Decides checks of plain counters without making a closure, and leaves gaps in the reply for the general way. A
-- counter is plain if its fragment's `resume` says so: it is not blocked, nothing was carried over, it was stored under these
-- parameters, the clock was not set back by an interval or more since, and it can be read.
--
-- What follows is never run as it stands. compose.mjs writes it out: a block of `if name == algorithm.name` once for each algorithm
-- that fragments.json lists as plain, and in the place of each call of a function that is declared here, in the algorithm's fragment
-- or its core, what that function does; of `algorithm.f` without a call, whether there is an f. Such a function has no `return` but at
-- its end, and is called with its own parameters' names. Where `algorithm.variables` says so, what `limit` and `state` hold are local
-- variables.
--
-- Uses: algorithm, milliseconds, time_to_live
-- Leaves: gaps, now, program, reply, size, values

-- Says whether the counter is plain.
local function open_plain(limit, state, value)
  local is_plain = false
  if value then
    is_plain = algorithm.resume(limit, state, now, value)
  else
    is_plain = algorithm.begin(limit, state, now)
  end
  state.is_changed, state.micros = false, 0
  return is_plain
end

local function fits_plain(limit, state, cost)
  local fits = cost <= limit.quota
  if fits then
    fits = algorithm.fits(limit, state, cost)
  end
  return fits
end

local function answer_plain(limit, state, cost, fits, is_allowed, number)
  local delay, ticket = 0, nil
  if fits and algorithm.delay then
    delay, ticket = algorithm.delay(limit, state, cost)
  end
  if fits and is_allowed and charges then
    algorithm.take(limit, state, cost)
    state.is_changed = true
  end
  local micros = algorithm.reset_after(limit, state)
  local remaining = algorithm.remaining(limit, state)
  local millis = milliseconds(micros)
  state.micros = micros
  if remaining < 0 then remaining = 0 end
  reply[size + 2] = remaining
  if ticket then
    micros = delay
    reply[size + 1] = millis * 4 + 2
    millis = milliseconds(micros)
    reply[size + 3], reply[size + 4] = millis, ticket
    size = size + 4
  elseif fits then
    reply[size + 1] = millis * 4 + 1
    size = size + 2
  else
    reply[size + 1], reply[size + 3] = millis * 4, -1
    if cost <= limit.quota then
      micros = algorithm.retry_after(limit, state, cost)
      millis = milliseconds(micros)
      reply[size + 3] = millis
    end
    size = size + 3
    if charges and algorithm.keep_for and not state.is_changed then
      micros = state.micros
      micros = algorithm.keep_for(limit, state, micros)
      if micros > 0 and micros > (redis.call('PTTL', KEYS[number]) + 1) * 1000 then
        local text = time_to_live(micros)
        redis.call('PEXPIRE', KEYS[number], text)
      end
    end
  end
end

-- A key that lives long enough keeps its time to live, which is twice as fast.
local function write_plain(limit, state, value, number)
  if state.is_changed then
    local micros, lives_on = state.micros, false
    if value then
      lives_on = algorithm.outlives(limit, state, micros)
    end
    if lives_on then
      local offset, bytes = algorithm.changed(limit, state)
      redis.call('SETRANGE', KEYS[number], offset, bytes)
    else
      micros = algorithm.extended(limit, state, micros)
      local text = time_to_live(micros)
      local bytes = algorithm.encode(limit, state)
      redis.call('SET', KEYS[number], bytes, 'PX', text)
    end
  end
end

local program = cjson.decode(ARGV[1])
local now, values, reply, size, gaps = 0, nil, nil, 0, nil

if program[1] > 0 then
  local width, operation, time_to_live_slack, times_to_live = program[1], program[2], program[4], {}
  local charges, tells_time = operation ~= 1, operation == 8
  now = program[3]
  if now == 0 then
    local time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  values = redis.call('MGET', unpack(KEYS))
  reply = { nil, nil, nil, nil }

  if width == 1 then
    local name, cost, times_at, is_allowed = program[5], program[8], 9 + program[9], true
    if name == algorithm.name then
      local limit, state = algorithm.variables(program, 7, 10)
      state.now = now
      for number = 1, #KEYS do
        local value, times = values[number], program[times_at + number] or 1
        local is_plain = open_plain(limit, state, value)
        if is_plain then
          for _ = 1, times do
            local fits = fits_plain(limit, state, cost)
            answer_plain(limit, state, cost, fits, is_allowed, number)
            if tells_time then
              size = size + 1
              reply[size] = now
            end
          end
          write_plain(limit, state, value, number)
        else
          gaps = gaps or {}
          gaps[#gaps + 1] = { at = size, first = number, times = times }
        end
      end
    end
  else
    local limits, at = {}, 5
    for i = 1, width do
      local limit = { name = program[at], shadow = program[at + 1] == 1, quota = program[at + 2], cost = program[at + 3] }
      local name = limit.name
      limit.state = { now = now, fits = false }
      if name == algorithm.name then
        algorithm.parameters(limit, program, at + 5)
      end
      limits[i] = limit
      at = at + 5 + program[at + 4]
    end
    for first = 0, #KEYS - 1, width do
      local times, is_plain = program[at + first / width] or 1, true
      for i = 1, width do
        local limit, value = limits[i], values[first + i]
        local name, state = limit.name, limit.state
        if is_plain and name == algorithm.name then
          is_plain = open_plain(limit, state, value)
        end
      end
      if not is_plain then
        gaps = gaps or {}
        gaps[#gaps + 1] = { at = size, first = first + 1, times = times }
        times = 0
      end
      for time = 1, times do
        local is_allowed = true
        for i = 1, width do
          local limit, fits = limits[i], false
          local name, state, cost = limit.name, limit.state, limit.cost
          if name == algorithm.name then
            fits = fits_plain(limit, state, cost)
          end
          state.fits = fits
          if not fits and not limit.shadow then is_allowed = false end
        end
        for i = 1, width do
          local limit, number = limits[i], first + i
          local name, state, cost = limit.name, limit.state, limit.cost
          if name == algorithm.name then
            local fits, value = state.fits, values[number]
            answer_plain(limit, state, cost, fits, is_allowed, number)
            if time == times then
              write_plain(limit, state, value, number)
            end
          end
        end
        if tells_time then
          size = size + 1
          reply[size] = now
        end
      end
    end
  end
  if not gaps then return reply end
end
