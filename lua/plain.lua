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
-- Of checks of several kinds: these, and how many keys follow each other of each kind, or the kind and the keys of check after check.
local kinds, key_counts, rows = nil, nil, nil
if type(program[1]) == 'table' then
  kinds, key_counts, rows = program[1], program[2], program[3]
  program = kinds[1]
end

if program[1] > 0 then
  local time_to_live_slack, times_to_live, all_times, key_count = 1000, nil, nil, #KEYS
  local charges, tells_time = true, false
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

  if program[1] == 1 and not rows then
    local kind, first_key, last_key = 1, 1, key_counts and key_counts[1] or key_count
    while program do
      local name, cost, is_allowed = program[3], program[5], true
      charges, tells_time = program[2] ~= 1, program[2] == 8
      if name == algorithm.name then
        algorithm.functions()
        local limit, state = algorithm.variables(program, 4, 6)
        state.now = now
        for number = first_key, last_key do
          local value, times = values[number], all_times and all_times[number + 2] or 1
          local is_plain = open_plain(limit, state, value)
          if is_plain then
            for _ = 1, times do
              local fits = fits_plain(limit, state, cost)
              local first, second, third, ticket = answer_plain(limit, state, cost, fits, is_allowed, number)
              if key_count == 1 and times == 1 and fits and not third and not tells_time and first < 2 ^ 31 and second < 2 ^ 20 then
                reply = first * 2 ^ 20 + (second - second % 1)
              else
                add_plain(first, second, third, ticket)
                add_time()
              end
            end
            write_plain(limit, state, value, number)
          else
            gaps = gaps or {}
            gaps[#gaps + 1] = { at = size, kind = program, keys = { number }, times = times }
          end
        end
      end
      kind, first_key, program = kind + 1, last_key + 1, kinds and kinds[kind + 1]
      last_key = last_key + (program and key_counts[kind] or 0)
    end
  else
    algorithm.functions()
    local limits_of = {}
    for kind, program in ipairs(kinds or { program }) do
      local limits, at = {}, 3
      program.is_long = true
      for i = 1, program[1] do
        local limit = { name = program[at], quota = program[at + 1], cost = program[at + 2], shadow = program[at + 3] == 1 }
        local name = limit.name
        limit.state = { now = now, fits = false }
        if name == algorithm.name then
          algorithm.parameters(limit, program, at + 5)
        end
        limits[i] = limit
        at = at + 5 + program[at + 4]
      end
      limits_of[kind] = limits
    end
    -- Rows of several kinds may have keys in common: the state of each key serves all of its rows, and is written behind the last one.
    -- What follows a row that is left to the general way, and has a key in common with it, is left, too.
    local kind, at, states, open = program, 0, {}, {}
    local limits, width, last = limits_of[1], program[1], rows and #rows or key_count
    while at < last do
      local times, is_plain, is_allowed = 1, true, true
      if rows then
        at = at + 1
        kind, limits = kinds[rows[at]], limits_of[rows[at]]
        width = kind[1]
      else
        times = all_times and all_times[at / width + 3] or 1
      end
      charges, tells_time = kind[2] ~= 1, kind[2] == 8
      for i = 1, width do
        local limit, number, fits = limits[i], rows and rows[at + i] or at + i, false
        local name, state, cost, value = limit.name, limit.state, limit.cost, values[number]
        if rows then
          state = open[number]
          if not state then
            state = { now = now, fits = false, limit = limit, is_open = false, is_left = false }
            open[number] = state
          end
          is_plain = is_plain and not state.is_left
        end
        if is_plain and name == algorithm.name then
          if not state.is_open then
            is_plain = open_plain(limit, state, value)
          end
          if is_plain then
            fits = fits_plain(limit, state, cost)
          end
        end
        if rows then state.is_open = is_plain or state.is_open end
        states[i], state.fits = state, fits
        if not fits and not limit.shadow then is_allowed = false end
      end
      if not is_plain then
        local keys = {}
        for i = 1, width do
          keys[i] = rows and rows[at + i] or at + i
          states[i].is_left = true
        end
        gaps = gaps or {}
        gaps[#gaps + 1] = { at = size, kind = kind, keys = keys, times = times }
        times = 0
      end
      for time = 1, times do
        is_allowed = is_allowed or time > 1
        for i = 1, time > 1 and width or 0 do
          local limit, state, fits = limits[i], states[i], false
          local name, cost = limit.name, limit.cost
          if name == algorithm.name then
            fits = fits_plain(limit, state, cost)
          end
          state.fits = fits
          if not fits and not limit.shadow then is_allowed = false end
        end
        for i = 1, width do
          local limit, state, number = limits[i], states[i], rows and rows[at + i] or at + i
          local name, cost, value = limit.name, limit.cost, values[number]
          local fits, first, second, third, ticket = state.fits, 0, 0, nil, nil
          if name == algorithm.name then
            first, second, third, ticket = answer_plain(limit, state, cost, fits, is_allowed, number)
            if not rows and time == times then
              write_plain(limit, state, value, number)
            end
          end
          add_plain(first, second, third, ticket)
        end
        add_time()
      end
      at = at + width
    end
    for number = 1, rows and key_count or 0 do
      local state, value = open[number], values[number]
      local limit = state.limit
      local name = limit.name
      if name == algorithm.name then
        write_plain(limit, state, value, number)
      end
    end
    -- What has been written since is read again by the general way.
    if rows then values = nil end
  end
  if not gaps then return reply end
end
