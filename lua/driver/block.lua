-- Blocks of counters: until when, for how long, and, of a limit whose blocks have steps, how many offences there were, 255 at most.
-- A state that is blocked holds `blocked_until`. Its envelope holds `blocked_for`; `offences`, if there were any; `ended_at` if the
-- block is over and kept for these; and `changed` if that is not what is stored.
--
-- Uses: now
-- Leaves: BLOCKED, begin_block, open_block, packed_block, set_block

local BLOCKED, MOST_OFFENCES, OFFENCE = 255, 255, 1 / 256
-- The longest block, 407 days in microseconds, whose length has room for offences behind the point.
local LONGEST = 2 ^ 45 - 1

-- Takes over the stored block as of now. Offences are behind the point of its length, which is none of a block that is over.
local function open_block(limit, state, envelope, blocked_until, length)
  local offences = floor(length % 1 / OFFENCE)
  local blocked_for = length - length % 1
  local counts = limit.steps and offences > 0
  if counts then envelope.offences = offences end
  if blocked_until > now and blocked_for > 0 then
    -- If the clock was set back, the block ends no later than if it had just begun.
    state.blocked_until, envelope.blocked_for = min(blocked_until, now + blocked_for), blocked_for
    if state.blocked_until < blocked_until then state.migrated, envelope.changed = true, true end
    if offences > 0 and not counts then envelope.changed = true end
  elseif counts and now < blocked_until + limit.forget_after then
    -- It is over, also if the clock steps back again; and if it did, no more than if it had just ended.
    envelope.ended_at, envelope.changed = min(blocked_until, now), blocked_until > now or blocked_for > 0
    if blocked_until > now then state.migrated = true end
  else
    -- What is stored next stands without a block that is over.
    envelope.offences, envelope.changed = nil, true
  end
end

-- The block as it is stored, and the microseconds for which it has to be kept.
local function packed_block(limit, state)
  local envelope, ends, length, kept = state.envelope, state.blocked_until, 0, 0
  if ends then
    length = envelope.blocked_for
  elseif envelope.ended_at then
    ends = envelope.ended_at
  else
    return '', 0
  end
  if envelope.offences then length, kept = length + envelope.offences * OFFENCE, limit.forget_after end
  return string.char(BLOCKED) .. pack('<dd', ends, length), ends + kept - now
end

-- Refuses a counter from now on, which ends the block of before. A block of no time forgets the offences.
local function set_block(state, duration, offences)
  local envelope = state.envelope or {}
  if offences then duration = min(duration, LONGEST) end
  state.envelope, state.blocked_until = envelope, duration > 0 and now + duration or nil
  envelope.blocked_for, envelope.offences = duration, duration > 0 and offences or nil
  envelope.ended_at, envelope.changed = nil, true
end

-- Begins the block of a check that is refused. The counter begins anew when it ends: what was used is forgotten at once. What is
-- still to come stays: leases that are held, tickets of a queue, and what is owed beyond the quota. If the same check would
-- have to wait longer for that, the block lasts as long, so that nothing that is asked meanwhile lengthens its wait.
local function begin_block(limit, state, cost)
  local algorithm, steps, duration, offences = limit.algorithm, limit.steps, limit.block_for, nil
  if steps then
    offences = min((state.envelope and state.envelope.offences or 0) + 1, MOST_OFFENCES)
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
