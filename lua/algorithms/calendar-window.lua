-- Calendar window. Parameters: start and end of the window that holds now, by the caller's time zone; retain.
-- Stored value: window-count.lua. With retain, finished windows are in a list at key .. ':history', which is in KEYS too:
-- start, end, count of each, the newest last.
--
-- Uses: time_to_live, window_count

local counted = window_count()

local function history_key(key) return key .. ':history' end

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

return {
  parameters = { 'start', 'window_end', 'retain' },
  encoded_size = 32,
  reuses_state = true,

  open = function(limit, stored, now, _, state)
    if now < limit.start or now >= limit.window_end then return true end
    state.finished = nil
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
        state.count = old_count
        state.migrated = true
      end
    end
  end,

  fits = counted.fits,
  take = counted.take,
  give = counted.give,
  remaining = counted.remaining,
  retry_after = counted.retry_after,
  reset_after = counted.reset_after,

  -- It depends on the window alone, unless it is kept for longer.
  keep_for = function(limit, _, reset_after)
    return limit.retain > 0 and reset_after > 0 and reset_after + limit.retain or 0
  end,

  encode = counted.encode,
  save = function(limit, state, key)
    if not state.finished then return end
    local list, retain = history_key(key), limit.retain
    redis.call('RPUSH', list, unpack(state.finished))
    while state.now >= redis.call('LINDEX', list, 1) + retain do redis.call('LTRIM', list, 3, -1) end
    redis.call('PEXPIRE', list, time_to_live(state.finished[2] + retain - state.now))
  end,

  history = function(limit, state, key)
    local windows = redis.call('LRANGE', history_key(key), 0, -1)
    if state.finished then for i = 1, 3 do windows[#windows + 1] = state.finished[i] end end
    if state.count > 0 then
      for _, value in ipairs({ state.start, state.window_end, state.count }) do windows[#windows + 1] = value end
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
