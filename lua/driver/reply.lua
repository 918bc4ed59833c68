-- What the call replies: decisions, and the outcomes of operations.
--
-- Uses: has_features, milliseconds, now, reply, size
-- Leaves: add, add_undecided, answer, wait_for

reply = reply or {}

local function add(value)
  size = size + 1
  reply[size] = value
end

local function add_undecided()
  add(-1)
  add(now)
end

-- Microseconds until a cost fits; `math.huge` for never.
local function wait_for(limit, state, cost)
  local algorithm = limit.algorithm
  if cost > limit.quota and not algorithm.varies then return math.huge end
  local micros = algorithm.fits(limit, state, cost) and 0 or algorithm.retry_after(limit, state, cost)
  if has_features and limit.estimates and micros > 0 then micros = min(micros, limit.estimates:until_fits(limit, state, cost)) end
  if state.blocked_until then micros = max(micros, state.blocked_until - now) end
  return micros
end

-- The same in the form of a reply.
local function retry_after(limit, state, cost)
  local micros = wait_for(limit, state, cost)
  if micros == math.huge then return -1 end
  return milliseconds(micros)
end

-- Replies to an entry, and returns the microseconds until its counter is fresh. `withheld` are the units that a refused entry may not use.
local function answer(limit, state, cost, fits, delay, ticket, withheld)
  local algorithm = limit.algorithm
  local reset_after, remaining = algorithm.reset_after(limit, state), algorithm.remaining(limit, state) - withheld
  local micros = reset_after
  if remaining < 0 then remaining = 0 end
  if state.blocked_until then micros, remaining = max(micros, state.blocked_until - now), 0 end
  local millis = milliseconds(micros)
  reply[size + 2] = remaining
  if fits and not ticket then
    reply[size + 1] = millis * 4 + 1
    size = size + 2
  elseif fits then
    reply[size + 1] = millis * 4 + 2
    reply[size + 3], reply[size + 4] = milliseconds(delay), ticket
    size = size + 4
  else
    reply[size + 1] = millis * 4
    reply[size + 3] = delay and milliseconds(delay) or retry_after(limit, state, cost + withheld)
    size = size + 3
  end
  if limit.steps then
    size = size + 1
    reply[size] = state.envelope and state.envelope.offences or 0
  end
  if limit.counts_refused then add(limit.quota - algorithm.remaining(limit, state)) end
  if algorithm.varies then
    add(algorithm.capacity(limit, state))
    if limit.has_credits == 1 then add(algorithm.credits(limit, state)) end
  end
  if algorithm.note then add(algorithm.note(limit, state, cost)) end
  return reset_after
end
