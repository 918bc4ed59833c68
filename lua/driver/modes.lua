-- A mode determines whether a check charges what fits, may reserve units of the future, does so by a claim, reserves units at an
-- estimate, begins blocks, and replies the time last.
--
-- Uses: CLAIM, CONSUME, CONSUME_REFUNDABLE, CONSUME_WAITING, HOLD, RESERVE
-- Leaves: mode_of

local function mode_of(operation)
  if operation == CONSUME then return { charges = true, begins_blocks = true } end
  if operation == CONSUME_REFUNDABLE then return { charges = true, begins_blocks = true, tells_time = true } end
  if operation == CONSUME_WAITING then return { charges = true, tells_time = true } end
  if operation == RESERVE then return { charges = true, reserves = true, tells_time = true } end
  if operation == CLAIM then return { charges = true, reserves = true, claims = true, tells_time = true } end
  if operation == HOLD then return { charges = true, estimates = true, tells_time = true } end
  return {}
end
