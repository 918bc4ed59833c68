-- Calendar window. Parameters: start and end of the window that holds now, by the caller's time zone; retain.
-- Stored value: window-count.lua. With retain, finished windows are in a list whose key follows the counter's own in KEYS: start, end,
-- count of each, the newest last.
--
-- Uses: time_to_live, window_count

local counted = window_count()

local function history_key(state) return KEYS[state.number + 1] end

local function begin(limit, state, now)
  state.count, state.start, state.window_end, state.last, state.is_stored = 0, limit.start, limit.window_end, now, false
  return now >= limit.start and now < limit.window_end
end

local function resume(limit, state, now, value)
  local is_plain = #value == 32
  if is_plain then
    state.start, state.window_end, state.count, state.last = unpack_doubles('<dddd', value)
    state.is_stored = true
    is_plain = state.start == limit.start and state.window_end == limit.window_end and now >= limit.start and now < limit.window_end
    if now >= state.window_end and limit.retain == 0 then
      is_plain = begin(limit, state, now)
    end
  end
  return is_plain
end

local function is_within(time, window_start, window_end) return time >= tonumber(window_start) and time < tonumber(window_end) end

local function corrected(count, difference) return max(0, min(tonumber(count) + difference, MAX_OWED)) end

-- The first of `count` windows, counted from 0, that ends after a time.
local function first_ending_after(time, count, end_of)
  local low, high = 0, count
  while low < high do
    local middle = floor((low + high) / 2)
    if tonumber(end_of(middle)) > time then high = middle else low = middle + 1 end
  end
  return low
end

-- Changes the counts of finished windows.
local function correct_stored(state, list)
  if not state.corrections then return end
  for _, correction in ipairs(state.corrections) do
    local end_of = function(at) return redis.call('LINDEX', list, 3 * at + 1) end
    local low = first_ending_after(correction[1], redis.call('LLEN', list) / 3, end_of)
    local window = redis.call('LRANGE', list, 3 * low, 3 * low + 2)
    if #window == 3 and is_within(correction[1], window[1], window[2]) then
      redis.call('LSET', list, 3 * low + 2, string.format('%.0f', corrected(window[3], correction[2])))
    end
  end
  state.corrections = nil
end

return {
  parameters = { 'start', 'window_end', 'retain' },
  encoded_size = 32,
  reuses_state = true,

  open = function(limit, stored, now, _, state)
    if now < limit.start or now >= limit.window_end then return true end
    state.finished, state.corrections = nil, nil
    if not stored then
      begin(limit, state, now)
    elseif not resume(limit, state, now, stored) then
      local old_start, old_end, old_count, last = state.start, state.window_end, state.count, state.last
      begin(limit, state, now)
      if now >= old_end then
        if old_end + limit.retain > now then state.finished = { old_start, old_end, old_count } end
      elseif now < old_start and last - now < old_end - old_start then
        state.count, state.start, state.window_end, state.last = old_count, old_start, old_end, last
      else
        -- Charges made before the stored window do not belong to it.
        local is_later = now >= old_start and old_start > limit.start
        state.count = old_count
        if is_later then state.start = old_start end
        if is_later and old_end == limit.window_end then
          state.last = last
        else
          state.migrated = true
        end
      end
    end
  end,

  fits = counted.fits,
  take = counted.take,
  give = counted.give,
  remaining = counted.remaining,
  retry_after = counted.retry_after,
  reset_after = counted.reset_after,

  counts = counted.counts,
  -- A finished window is changed when the counter is saved.
  correct = function(_, state, charged_at, difference)
    state.corrections = state.corrections or {}
    table.insert(state.corrections, { charged_at, difference })
  end,

  -- Depends on the window alone, unless it is kept for longer.
  keep_for = function(limit, _, reset_after)
    return limit.retain > 0 and reset_after > 0 and reset_after + limit.retain or 0
  end,

  encode = counted.encode,
  save = function(limit, state)
    if not state.finished then return correct_stored(state, history_key(state)) end
    local list, retain = history_key(state), limit.retain
    redis.call('RPUSH', list, unpack(state.finished))
    while state.now >= redis.call('LINDEX', list, 1) + retain do redis.call('LTRIM', list, 3, -1) end
    redis.call('PEXPIRE', list, time_to_live(state.finished[2] + retain - state.now))
    correct_stored(state, list)
  end,

  history = function(limit, state)
    local windows = redis.call('LRANGE', history_key(state), 0, -1)
    if state.finished then for i = 1, 3 do windows[#windows + 1] = state.finished[i] end end
    if state.count > 0 then
      for _, value in ipairs({ state.start, state.window_end, state.count }) do windows[#windows + 1] = value end
    end
    for _, correction in ipairs(state.corrections or {}) do
      local i = 3 * first_ending_after(correction[1], #windows / 3, function(at) return windows[3 * at + 2] end) + 1
      if i < #windows and is_within(correction[1], windows[i], windows[i + 1]) then
        windows[i + 2] = corrected(windows[i + 2], correction[2])
      end
    end
    local live = {}
    for i = 1, #windows, 3 do
      if windows[i + 1] + limit.retain > state.now then
        live[#live + 1] = windows[i] / 1000
        live[#live + 1] = windows[i + 1] / 1000
        live[#live + 1] = tonumber(windows[i + 2])
      end
    end
    return live
  end,
}
