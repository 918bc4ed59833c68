-- Microseconds as whole milliseconds, rounded up. Waits beyond 36,000 years are all the same, so a reply is a whole number for
-- every client.
--
-- Leaves: milliseconds

local function milliseconds(micros)
  local millis = (micros + -micros % 1000) / 1000
  -- Beyond that, the result may not be a whole number.
  if micros > MAX_OWED then millis = min(ceil(micros / 1000), 2 ^ 50) end
  return millis
end
