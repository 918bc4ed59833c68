-- Makes a counter that refused live as long as its wait. It was stored under parameters by which it may be fresh sooner. Once
-- is enough while it is open.
--
-- Uses: time_to_live
-- Leaves: keep_alive

local function keep_alive(limit, state)
  if state.kept_alive then return end
  state.kept_alive = state.stays_open
  local algorithm, number = limit.algorithm, state.number
  local micros = algorithm.keep_for(limit, state, algorithm.reset_after(limit, state))
  if micros <= 0 then return end
  local last = algorithm.own_type and state.envelope and state.envelope.carried_to and number + 1 or number
  for each = number, last do
    if micros > (redis.call('PTTL', KEYS[each]) + 1) * 1000 then redis.call('PEXPIRE', KEYS[each], time_to_live(micros)) end
  end
end
