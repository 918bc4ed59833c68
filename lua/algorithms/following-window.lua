-- A calendar window or budget of which nobody said where its windows begin: the window that runs, if any does, else the one of the
-- parameters. Parameters and stored value: calendar-window.lua.
--
-- Uses: make_algorithm

local window = make_algorithm('calendar-window')
local open = window.open

window.parameters = { 'start', 'window_end', 'retain' }

function window.open(limit, stored, now, key, state)
  if stored then
    local window_start, window_end, count, last = unpack_doubles('<dddd', stored)
    local is_earlier = now < window_start and last - now < window_end - window_start
    if count > 0 and now < window_end and (now >= window_start or is_earlier) then
      local running = { start = min(window_start, now), window_end = window_end }
      return open(setmetatable(running, { __index = limit }), stored, now, key, state)
    end
  end
  return open(limit, stored, now, key, state)
end

return window
