-- Microseconds as whole milliseconds, rounded up. Waits beyond 36,000 years are all the same, and a reply stays a whole number for
-- every client.
--
-- Leaves: milliseconds

local function milliseconds(micros)
  local millis = (micros + -micros % 1000) / 1000
  -- Beyond, that may be no whole number.
  if micros > MAX_OWED then millis = min(ceil(micros / 1000), 2 ^ 50) end
  return millis
end
