-- Blocks of counters.
--
-- Uses: now
-- Leaves: begin_block, set_block

-- Refuses a counter until a time, which ends the block of before.
local function set_block(state, blocked_until, blocked_for)
  local envelope = state.envelope or {}
  state.blocked_until = blocked_until > now and blocked_until or nil
  state.envelope, envelope.blocked_for, envelope.changed = envelope, blocked_for, true
end

-- Begins the block of a check that is refused. The counter begins anew when it ends: what was used is forgotten at once. What is
-- still to come stays: leases that are held, tickets of a queue, and what is owed beyond the quota. If the same check would
-- have to wait longer for that, the block lasts as long, so that nothing that is asked meanwhile lengthens its wait.
local function begin_block(limit, state, cost)
  local algorithm, duration = limit.algorithm, limit.block_for
  if not algorithm.delay then
    algorithm.give(limit, state, min(limit.quota, limit.quota - algorithm.remaining(limit, state)), -1, -1)
  end
  if cost <= limit.quota and not algorithm.renew and not algorithm.fits(limit, state, cost) then
    duration = max(duration, algorithm.retry_after(limit, state, cost))
  end
  set_block(state, now + duration, duration)
end
