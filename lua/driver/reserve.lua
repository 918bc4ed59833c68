-- Whether units are available within the longest wait, and how long that is. A limit that keeps a part of its quota for others
-- reserves no future units, except by a claim: the debt would keep others from their part until it is paid.
--
-- Leaves: can_reserve

local function can_reserve(limit, state, cost, longest, claims)
  local algorithm = limit.algorithm
  -- Nothing is asked for, so nothing is reserved for later.
  if cost == 0 then return not state.blocked_until and algorithm.fits(limit, state, cost) end
  if cost > limit.quota and not algorithm.varies or state.blocked_until then return false end
  if algorithm.delay then
    if not algorithm.fits(limit, state, cost) then return false end
    local delay = algorithm.delay(limit, state, cost)
    return delay <= longest, delay
  end
  if algorithm.fits(limit, state, cost) then return true, 0 end
  if not algorithm.debt_cleared_at or limit.whole and not claims then return false end
  local delay = algorithm.retry_after(limit, state, cost)
  return delay <= longest and algorithm.can_owe(limit, state, cost), delay
end
