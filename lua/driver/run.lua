-- Runs the program from its first check to its end, and closes all counters.
--
-- Uses: CLAIM, CONSUME, CONSUME_EACH, CONSUME_REFUNDABLE, CONSUME_WAITING, HOLD, LEARN, LEARN_RATE, OF_FEATURE, PEEK, RESERVE, SETTLE, TOGETHER,
--   UP_TO, claim_keeps, claim_keys, claims, close, decide, entry_costs, entry_keys, entry_limits, entry_waits, feature_of, filled, fit_most, fit_together,
--   gap_ends, gaps, limits, make_fit_most, mode_of, operate, position, program, reply, size, states, together_numbers

while program[position] do
  local operation, count = program[position], program[position + 1]
  position = position + 2
  if operation == CONSUME_EACH then
    local times, number, step = program[position], program[position + 1], program[position + 2]
    position = position + 3
    for i = 1, count do
      entry_limits[i], entry_keys[i], entry_costs[i] = limits[program[position]], number + i - 1, program[position + 1]
      position = position + 2
    end
    decide(mode_of(CONSUME), count, times, step)
  elseif operation == TOGETHER then
    fit_together, together_numbers = feature_of(program[position]).fit_together, {}
    for i = 1, count do together_numbers[i] = program[position + i] end
    position = position + 1 + count
  elseif operation == UP_TO then
    fit_most = make_fit_most()
  elseif operation <= PEEK or operation == RESERVE or operation == CONSUME_REFUNDABLE or operation == CLAIM or operation == HOLD
    or operation == CONSUME_WAITING then
    for i = 1, count do
      entry_limits[i], entry_keys[i], entry_costs[i] = limits[program[position]], program[position + 1], program[position + 2]
      position = position + 3
      if operation == RESERVE or operation == CLAIM then
        entry_waits[i] = program[position]
        position = position + 1
      end
      if operation == CLAIM then
        claim_keys[i], claim_keeps[i] = program[position], program[position + 1]
        position = position + 2
      end
    end
    if operation == CLAIM then
      claims.claim(count)
    else
      decide(mode_of(operation), count, 1, 0)
    end
  else
    local limit, number, first, last = limits[program[position]], program[position + 1], position + 2, nil
    if operation == OF_FEATURE then
      -- It says how much it needs.
      first, last = position + 3, position + 2 + program[position + 2]
    else
      last = position + (operation == LEARN and 11 or operation == LEARN_RATE and 17 or operation == SETTLE and 5 or 4)
    end
    operate(operation, limit, number, unpack(program, first, last))
    position = last + 1
  end
  if gaps then gap_ends[#gap_ends + 1] = size end
end

for _, state in pairs(states) do
  if state then close(state) end
end

return gaps and filled() or reply
