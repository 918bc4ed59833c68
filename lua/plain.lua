-- The fast way. Decides checks of plain counters without making a closure, and leaves gaps in the reply for the general way. A
-- counter is plain if its fragment's `resume` says so: it is not blocked, nothing was carried over, it was stored under these
-- parameters, the clock was not set back by an interval or more since, and it can be read.
--
-- What follows is never run as it stands. compose.mjs writes it out: a block of `if name == algorithm.name` once for each algorithm
-- that fragments.json lists as plain, and in the place of each call of a function that is declared here, in the algorithm's fragment
-- or its core, what that function does; of `algorithm.f` without a call, whether there is an f. Such a function has no `return` but at
-- its end, and is called with its own parameters' names. Where `algorithm.variables` says so, what `limit` and `state` hold are local
-- variables. In the place of `algorithm.functions` stand those that are passed to `pcall`.
--
-- Uses: algorithm, lengthen_life, milliseconds, time_to_live
-- Leaves: gaps, now, program, reply, settings, size, values

-- Returns whether the counter is plain.
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
  local first, third = millis * 4, nil
  state.micros = micros
  if remaining < 0 then remaining = 0 end
  if ticket then
    micros = delay
    third = milliseconds(micros)
    first = first + 2
  elseif fits then
    first = first + 1
  else
    third = -1
    if cost <= limit.quota then
      micros = algorithm.retry_after(limit, state, cost)
      third = milliseconds(micros)
    end
  end
  -- It was stored under parameters by which it may be fresh sooner, and is not written now.
  if charges and algorithm.keep_for and not state.is_changed then
    micros = state.micros
    micros = algorithm.keep_for(limit, state, micros)
    lengthen_life(number, micros)
  end
  return first, remaining, third, ticket
end

local function add_plain(first, second, third, ticket)
  reply[size + 1], reply[size + 2] = first, second
  size = size + 2
  if third then
    size = size + 1
    reply[size] = third
    if ticket then
      size = size + 1
      reply[size] = ticket
    end
  end
end

local function add_time()
  if tells_time then
    size = size + 1
    reply[size] = now
  end
end

-- A key that lives long enough keeps its time to live, which is twice as fast.
local function write_plain(limit, state, value, number)
  if state.is_changed then
    local micros, lives_on = state.micros, false
    if value then
      lives_on = algorithm.outlives(limit, state, micros)
    end
    if micros <= 0 then
      redis.call('DEL', KEYS[number])
    elseif lives_on then
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

local program, settings = cjson.decode(ARGV[1]), ARGV[2]
local now, values, reply, size, gaps = 0, nil, nil, 0, nil

if program[1] > 0 then
  local width, operation, time_to_live_slack, times_to_live, all_times = program[1], program[2], 1000, nil, nil
  local charges, tells_time = operation ~= 1, operation == 8
  if settings then
    settings = cjson.decode(settings)
    now, time_to_live_slack, all_times = settings[1], settings[2], settings
  end
  if now == 0 then
    local time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  values = redis.call('MGET', unpack(KEYS))
  reply = { nil, nil, nil, nil }

  if width == 1 then
    local name, cost, is_allowed, keys = program[3], program[5], true, #KEYS
    if name == algorithm.name then
      algorithm.functions()
      local limit, state = algorithm.variables(program, 4, 6)
      state.now = now
      for number = 1, keys do
        local value, times = values[number], all_times and all_times[number + 2] or 1
        local is_plain = open_plain(limit, state, value)
        if is_plain then
          for _ = 1, times do
            local fits = fits_plain(limit, state, cost)
            local first, second, third, ticket = answer_plain(limit, state, cost, fits, is_allowed, number)
            if keys == 1 and times == 1 and fits and not third and not tells_time and first < 2 ^ 31 and second < 2 ^ 20 then
              reply = first * 2 ^ 20 + (second - second % 1)
            else
              add_plain(first, second, third, ticket)
              add_time()
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
    algorithm.functions()
    local limits, at = {}, 3
    for i = 1, width do
      local limit = { name = program[at], quota = program[at + 1], cost = program[at + 2], shadow = program[at + 3] == 1 }
      local name = limit.name
      limit.state = { now = now, fits = false }
      if name == algorithm.name then
        algorithm.parameters(limit, program, at + 5)
      end
      limits[i] = limit
      at = at + 5 + program[at + 4]
    end
    for first_key = 0, #KEYS - 1, width do
      local times, is_plain, is_allowed = all_times and all_times[first_key / width + 3] or 1, true, true
      for i = 1, width do
        local limit, value, fits = limits[i], values[first_key + i], false
        local name, state, cost = limit.name, limit.state, limit.cost
        if is_plain and name == algorithm.name then
          is_plain = open_plain(limit, state, value)
          if is_plain then
            fits = fits_plain(limit, state, cost)
          end
        end
        state.fits = fits
        if not fits and not limit.shadow then is_allowed = false end
      end
      if not is_plain then
        gaps = gaps or {}
        gaps[#gaps + 1] = { at = size, first = first_key + 1, times = times }
        times = 0
      end
      for time = 1, times do
        is_allowed = is_allowed or time > 1
        for i = 1, time > 1 and width or 0 do
          local limit, fits = limits[i], false
          local name, state, cost = limit.name, limit.state, limit.cost
          if name == algorithm.name then
            fits = fits_plain(limit, state, cost)
          end
          state.fits = fits
          if not fits and not limit.shadow then is_allowed = false end
        end
        for i = 1, width do
          local limit, number = limits[i], first_key + i
          local name, state, cost = limit.name, limit.state, limit.cost
          local fits, value, first, second, third, ticket = state.fits, values[number], 0, 0, nil, nil
          if name == algorithm.name then
            first, second, third, ticket = answer_plain(limit, state, cost, fits, is_allowed, number)
            if time == times then
              write_plain(limit, state, value, number)
            end
          end
          add_plain(first, second, third, ticket)
        end
        add_time()
      end
    end
  end
  if not gaps then return reply end
end
