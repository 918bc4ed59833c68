-- Fixed window. Parameters: interval. Stored value: window-count.lua.
--
-- Uses: window_count

local fixed_window = window_count()

fixed_window.parameters = { 'interval' }
fixed_window.encoded_size = 32
fixed_window.reuses_state = true

function fixed_window.open(limit, stored, now, _, state)
  local interval = limit.interval
  if stored then
    local start, window_end, count, last = unpack_doubles('<dddd', stored)
    if window_end > start + interval then window_end = start + interval end
    if last - now >= interval then
      state.migrated = true
      state.count, state.start, state.window_end, state.last = count, now, now + interval, now
      return
    end
    if now < window_end then
      state.count, state.start, state.window_end, state.last = count, start, window_end, last
      return
    end
  end
  state.count, state.start, state.window_end, state.last = 0, now, now + interval, now
end

return fixed_window
