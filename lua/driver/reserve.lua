-- Whether units can be had within the longest wait, and how long they have to be waited for.
--
-- Leaves: can_reserve

local function can_reserve(limit, state, cost, longest)
  local algorithm = limit.algorithm
  if cost > limit.quota and not algorithm.varies or state.blocked_until then return false end
  if algorithm.delay then
    if not algorithm.fits(limit, state, cost) then return false end
    local delay = algorithm.delay(limit, state, cost)
    return delay <= longest, delay
  end
  if algorithm.fits(limit, state, cost) then return true, 0 end
  if not algorithm.debt_cleared_at then return false end
  local delay = algorithm.retry_after(limit, state, cost)
  return delay <= longest and algorithm.can_borrow(limit, state, cost), delay
end
