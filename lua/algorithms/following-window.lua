-- A calendar window or budget whose anchor is unknown: uses the stored window while that lasts, else the one of the parameters.
-- Parameters and stored value: calendar-window.lua.
--
-- Uses: make_algorithm

local window = make_algorithm('calendar-window')
local open = window.open

window.parameters = { 'start', 'window_end', 'retain' }

function window.open(limit, stored, now, key, state)
  -- Earlier charges belong to whichever window they were made in, not to this one.
  local running = { start = max(limit.start, now - now % 1000) }
  if stored then
    local window_start, window_end, count, last = unpack_doubles('<dddd', stored)
    local is_earlier = now < window_start and last - now < window_end - window_start
    if count > 0 and now < window_end and (now >= window_start or is_earlier) then
      running.start, running.window_end = min(window_start, now), window_end
    end
  end
  return open(setmetatable(running, { __index = limit }), stored, now, key, state)
end

return window
