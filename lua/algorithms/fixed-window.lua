-- Fixed window. Parameters: interval. Stored value: window-count.lua. A window in which nothing was ever charged was last charged at 0.
--
-- Uses: window_count

local fixed_window = window_count()

fixed_window.parameters = { 'interval' }
fixed_window.encoded_size = 32
fixed_window.reuses_state = true

local function begin(limit, state, now)
  state.count, state.start, state.window_end, state.last, state.is_stored = 0, now, now + limit.interval, 0, false
  return true
end

local function resume(limit, state, now, value)
  local is_plain = #value == 32
  if is_plain then
    state.start, state.window_end, state.count, state.last = unpack_doubles('<dddd', value)
    state.is_stored = state.window_end <= state.start + limit.interval
    if not state.is_stored then state.window_end = state.start + limit.interval end
    -- A window that begins after it was charged was written by no window.
    is_plain = state.start <= state.last and state.last - now < limit.interval
  end
  if is_plain and now >= state.window_end then
    is_plain = begin(limit, state, now)
  end
  return is_plain
end

function fixed_window.open(limit, stored, now, _, state)
  if not stored then
    begin(limit, state, now)
  elseif not resume(limit, state, now, stored) then
    state.migrated = true
    state.start, state.window_end, state.last = now, now + limit.interval, now
  end
end

-- If all units of a window were given back, it still determines when units that are settled later count. A window in which nothing was ever
-- charged is none.
function fixed_window.held_for(_, state, holds)
  return state.count == 0 and state.last >= state.start and holds:is_any(state) and state.window_end - state.now or 0
end

return fixed_window
