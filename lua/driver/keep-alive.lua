-- Makes a counter that was checked but not charged live until it is fresh, as the check reports. It may have been stored under
-- parameters by which it is fresh sooner. Once is enough while it is open.
--
-- Uses: lengthen_life
-- Leaves: keep_alive

local function keep_alive(limit, state)
  if state.kept_alive then return end
  state.kept_alive = state.stays_open
  local algorithm, number = limit.algorithm, state.number
  local micros = algorithm.keep_for(limit, state, algorithm.reset_after(limit, state))
  local last = algorithm.own_type and state.envelope and state.envelope.carried_to and number + 1 or number
  for each = number, last do lengthen_life(each, micros) end
end
