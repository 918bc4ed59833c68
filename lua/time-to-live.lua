-- Times to live as text, since Redis takes long to write a number that Lua gives it; many keys have the same.
--
-- Leaves: time_to_live, time_to_live_slack

local time_to_live_slack, times_to_live

local function time_to_live(micros)
  local millis = (micros + -micros % 1000) / 1000
  if not times_to_live then times_to_live = {} end
  local text = times_to_live[millis]
  if not text then
    text = string.format('%.0f', millis + time_to_live_slack)
    times_to_live[millis] = text
  end
  return text
end
