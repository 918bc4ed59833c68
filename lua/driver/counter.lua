-- Counters: each is read when it is asked for, and written once, if it was changed: by the check or operation that has it, or at
-- the end of the call if others have it too. Until then one state serves them all.
-- A state holds what its fragment puts there, and `limit`, `number` (of its key), `kept_alive` and its envelope; and, if it
-- `stays_open`, whether it was `changed`, and its `reset_after`.
--
-- Uses: NO_CARRY, carry_over, has_features, is_varied, note_correction, now, report_changes, states, time_to_live, unwrap, values,
--   wrap, write_wrapped
-- Leaves: close, open, save

local function new_state(limit, number)
  return {
    limit = limit,
    now = now,
    number = number,
    stays_open = states[number] ~= nil,
    changed = false,
    migrated = false,
    reset_after = nil,
    envelope = nil,
    blocked_until = nil,
    changes = nil,
  }
end

-- Writes a counter if it was changed: at once, or, where it stays open, when it is closed. `reset_after` is in microseconds.
local function save(limit, state, reset_after, changed)
  if state.stays_open then
    state.reset_after, state.changed = reset_after, state.changed or changed
    return
  end
  if not changed then return end
  local algorithm, key, keep_for = limit.algorithm, KEYS[state.number], reset_after
  if algorithm.keep_for then keep_for = max(keep_for, algorithm.keep_for(limit, state, reset_after)) end
  if has_features and limit.estimates then keep_for = limit.estimates:saved(limit, state, keep_for) end
  if algorithm.units_for then
    state.envelope = state.envelope or {}
    state.envelope.carried_to = algorithm.units_for(limit, state)
  end
  if state.envelope then
    write_wrapped(limit, state, keep_for)
  elseif algorithm.encode then
    if keep_for > 0 then
      redis.call('SET', key, algorithm.encode(limit, state), 'PX', time_to_live(keep_for))
    else
      redis.call('DEL', key)
    end
  end
  if algorithm.save then algorithm.save(limit, state, key) end
  if state.changes then report_changes(limit, state) end
end

local function close(state)
  state.stays_open = false
  save(state.limit, state, state.reset_after, state.changed)
end

-- Reads the state of a counter as it is stored. Says whether the limit is of another time. `all` is whether all held units that have lapsed
-- come off.
local function read(limit, number, state, all)
  if has_features and limit.features then
    for _, feature in ipairs(limit.features) do
      if feature.is_of_another_time and feature:is_of_another_time() then return true end
    end
  end
  if is_varied then limit = limit.opened or limit end
  local algorithm, key, of_another_time = limit.algorithm, KEYS[number], nil
  local value, size = values[algorithm.own_type and number + 1 or number], algorithm.encoded_size
  local blocked_until, blocked_for, carried_to
  if value then value, blocked_until, blocked_for, carried_to = unwrap(value, algorithm) end
  if value and size and #value ~= size then value = nil end
  if has_features and limit.estimates and value then limit.estimates:stored(limit, state, value) end
  local quota = carried_to or limit.quota_before
  if limit.carry == NO_CARRY or quota == limit.quota or not (value or algorithm.own_type) then
    of_another_time = algorithm.open(limit, value, now, key, state, carried_to)
  else
    of_another_time = carry_over(limit, value, key, quota, state)
  end
  wrap(limit, state, blocked_until, blocked_for, carried_to)
  if has_features and limit.estimates and not of_another_time then limit.estimates:opened(limit, state, note_correction, all) end
  return of_another_time
end

-- Whether what failed is the value: it has another type, or does not hold what its fragment unpacks. Else, as where the user
-- may not run a command, nothing is known of the value, and it must not be lost.
local function is_of_value(problem)
  return string.find(problem, '^WRONGTYPE') or string.find(problem, '^user_script:%d+:')
end

-- Reads into a new state. An unreadable value counts as none, and does not fail the other checks of the call.
local function read_safely(limit, number, all)
  local state = new_state(limit, number)
  local readable, of_another_time = pcall(read, limit, number, state, all)
  if readable then return state, of_another_time end
  if not is_of_value(of_another_time) then error(of_another_time, 0) end
  for each = number, limit.algorithm.own_type and number + 1 or number do
    redis.call('DEL', KEYS[each])
    values[each] = nil
  end
  state = new_state(limit, number)
  return state, read(limit, number, state, all)
end

-- Closes a counter before the call ends. Whoever opens it next reads from Redis what it leaves.
local function reopen(number)
  close(states[number])
  local own_type = states[number].limit.algorithm.own_type
  states[number], values[number] = false, redis.call('MGET', KEYS[number])[1]
  if own_type then values[number + 1] = redis.call('MGET', KEYS[number + 1])[1] end
end

-- The state of a counter as of now; nil if the limit is of another time.
local function open(limit, number, all)
  local algorithm, state, of_another_time = limit.algorithm, states[number], nil
  if state then
    -- What has been changed back to a fresh state is one for whatever follows, in this call as in the next. And under other
    -- parameters a counter is found as the first ones leave it.
    if state.limit == limit and not (state.changed and state.reset_after <= 0) then return state end
    reopen(number)
  end
  if algorithm.encoded_size then
    state = new_state(limit, number)
    of_another_time = read(limit, number, state, all)
  else
    state, of_another_time = read_safely(limit, number, all)
  end
  if of_another_time then return nil end
  if state.stays_open then
    states[number] = state
  elseif algorithm.reuses_state and not (is_varied and limit.opened) and not limit.features then
    limit.reused = state
  end
  return state
end
