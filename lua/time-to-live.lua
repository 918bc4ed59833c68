-- Times to live as text, since Redis takes long to format a number from Lua; many keys have the same one.
--
-- Leaves: lengthen_life, time_to_live, time_to_live_slack

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

-- Makes a key live this long, plus the slack: otherwise a server that stalls while it decides would expire the key before its
-- counter is fresh. A key written like this has more than half of the slack left, except after the longest stalls.
local function lengthen_life(number, micros)
  if micros > 0 and micros > (redis.call('PTTL', KEYS[number]) - time_to_live_slack / 2) * 1000 then
    local text = time_to_live(micros)
    redis.call('PEXPIRE', KEYS[number], text)
  end
end
