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
-- Of checks of several kinds: these, and how many keys follow each other of each; or all limits, and check after check.
local kinds, key_counts, rows = nil, nil, nil
if type(program[1]) == 'table' then
  kinds, key_counts, rows = program[1], program[2], program[3]
end

if kinds or program[1] > 0 then
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

  if not rows and (kinds or program[1] == 1) then
    local kind, first_key, last_key = 1, 1, key_counts and key_counts[1] or key_count
    program = kinds and kinds[1] or program
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
            gaps[#gaps + 1] = { at = size, source = program, operation = program[2], limits = { 3 }, keys = { number }, costs = { cost }, times = times }
          end
        end
      end
      kind, first_key, program = kind + 1, last_key + 1, kinds and kinds[kind + 1]
      last_key = last_key + (program and key_counts[kind] or 0)
    end
  else
    algorithm.functions()
    local source, at, limits = kinds or program, kinds and 1 or 3 + program[1], {}
    while source[at] do
      local name, limit = source[at], nil
      if name == algorithm.name then
        limit = { name = name, quota = source[at + 1], shadow = source[at + 2] == 1, at = at, state = nil, algorithm.parameters(source, at + 4) }
        if not rows then
          limit.state = { limit = limit, now = now, fits = false, is_open = false, is_changed = false, micros = 0, algorithm.fields() }
        end
      end
      limits[#limits + 1] = limit
      at = at + 4 + source[at + 3]
    end
    -- Each check has a row of keys, which may be another one's, too, if the rows say which: then the state of each key serves all of them,
    -- and is written behind the last one. What follows a check that is left to the general way, and has a key of it, is left, too.
    local operation, width, numbers, costs, states, open, left = program[2], program[1], {}, {}, {}, rows and {}, nil
    local row, before = 1, 0
    for i = 1, rows and 0 or width do costs[i] = program[2 + i] end
    local members = rows and {} or limits
    while rows and rows[row] or not rows and before < key_count do
      local times, is_plain, is_allowed = 1, true, true
      if rows then
        operation, width, row = rows[row], rows[row + 1], row + 2
        for i = 1, width do
          members[i], numbers[i], costs[i], row = limits[rows[row]], rows[row + 1], rows[row + 2], row + 3
          is_plain = is_plain and not (left and left[numbers[i]])
        end
      else
        times = all_times and all_times[before / width + 3] or 1
        for i = 1, width do numbers[i] = before + i end
        before = before + width
      end
      charges, tells_time = operation ~= 1, operation == 8
      for i = 1, width do
        local limit, number, cost, fits = members[i], numbers[i], costs[i], false
        local name, state, value = limit.name, rows and open[number] or limit.state, values[number]
        if is_plain and name == algorithm.name then
          if not state then
            state = { limit = limit, now = now, fits = false, is_open = false, is_changed = false, micros = 0, algorithm.fields() }
            open[number] = state
          end
          if not state.is_open then
            is_plain = open_plain(limit, state, value)
          end
          if is_plain then
            fits = fits_plain(limit, state, cost)
            state.fits, state.is_open = fits, rows ~= nil
          end
        end
        states[i] = state
        if not fits and not limit.shadow then is_allowed = false end
      end
      if not is_plain then
        local gap = { at = size, source = source, operation = operation, limits = {}, keys = {}, costs = {}, times = times }
        left = left or {}
        for i = 1, width do
          gap.limits[i], gap.keys[i], gap.costs[i] = members[i].at, numbers[i], costs[i]
          left[numbers[i]] = true
        end
        gaps = gaps or {}
        gaps[#gaps + 1] = gap
        times = 0
      end
      for time = 1, times do
        is_allowed = is_allowed or time > 1
        for i = 1, time > 1 and width or 0 do
          local limit, state, cost, fits = members[i], states[i], costs[i], false
          local name = limit.name
          if name == algorithm.name then
            fits = fits_plain(limit, state, cost)
          end
          state.fits = fits
          if not fits and not limit.shadow then is_allowed = false end
        end
        for i = 1, width do
          local limit, state, number, cost = members[i], states[i], numbers[i], costs[i]
          local name, value = limit.name, values[number]
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
    end
    for number = 1, rows and key_count or 0 do
      local state, value = open[number], values[number]
      local limit = state and state.limit
      local name = limit and limit.name
      if name == algorithm.name then
        write_plain(limit, state, value, number)
      end
    end
    -- What has been written since is read again by the general way.
    if rows then values = nil end
  end
  if not gaps then return reply end
end
