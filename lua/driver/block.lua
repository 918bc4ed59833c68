-- Blocks of counters: how long they last, and, of a limit whose blocks have steps, how many offences there were, 255 at most.
-- envelope.lua says what of them stands in a state.
--
-- Uses: now
-- Leaves: begin_block, prolong_block, set_block

-- Blocks a counter from now on, which replaces an earlier block. A block of length 0 clears the offences; the longest block whose
-- length has room for them is 407 days.
local function set_block(state, duration, offences)
  local envelope = state.envelope or {}
  if offences then duration = min(duration, 2 ^ 45 - 1) end
  state.envelope, state.blocked_until = envelope, duration > 0 and now + duration or nil
  envelope.blocked_for, envelope.offences = duration, duration > 0 and offences or nil
  envelope.ended_at, envelope.changed = nil, true
end

-- Begins the block of a check that is refused. When it ends, the counter starts anew: what was used is forgotten at once. What is
-- still to come stays: held leases, tickets of a queue, and debt beyond the quota. If the same check would have to wait longer
-- for that, the block lasts as long, so that no request made meanwhile lengthens its wait.
local function begin_block(limit, state, cost)
  local algorithm, steps, duration, offences = limit.algorithm, limit.steps, limit.block_for, nil
  if steps then
    offences = min((state.envelope and state.envelope.offences or 0) + 1, 255)
    duration = steps[min(offences, #steps)]
  end
  if not algorithm.delay then
    algorithm.give(limit, state, min(limit.quota, limit.quota - algorithm.remaining(limit, state)), -1, -1)
  end
  if cost <= limit.quota and not algorithm.renew and not algorithm.fits(limit, state, cost) then
    duration = max(duration, algorithm.retry_after(limit, state, cost))
  end
  set_block(state, duration, offences)
end

-- Prolongs the block of a counter that is tried again: it lasts at least as long from now on as its last offence says. Returns whether
-- it did. A try is no offence.
local function prolong_block(limit, state)
  local offences, steps, duration = state.envelope.offences, limit.steps, limit.block_for
  if steps then duration = steps[min(max(offences or 0, 1), #steps)] end
  if now + duration <= state.blocked_until then return false end
  set_block(state, duration, offences)
  return true
end
