-- What happens to units that were left under a smaller quota.
--
-- Uses: PROPORTIONAL, in_proportion, now
-- Leaves: carry_over

-- Opens a counter with units left from a smaller quota. A smaller quota never reduces what is owed: instances that still decide
-- by the larger one would find room there.
local function carry_over(limit, value, key, quota, state)
  local algorithm = limit.algorithm
  if algorithm.renew or quota >= limit.quota then return algorithm.open(limit, value, now, key, state) end
  local before = setmetatable({ quota = quota }, { __index = limit })
  if algorithm.open(before, value, now, key, state) then return true end
  local left = algorithm.remaining(before, state)
  local proportional = limit.carry == PROPORTIONAL and left >= 0
  if state.burst then state.burst = max(state.burst, limit.quota) end
  if proportional and algorithm.scale_used then
    algorithm.scale_used(limit, state, limit.quota, quota)
    state.migrated = true
    return
  end
  local used, more = quota - left, 0
  if left < 0 then
    -- The debt stays the same.
    more = limit.quota - quota
  elseif proportional then
    more = in_proportion(used, limit.quota, quota) - used
  end
  if more > 0 then
    algorithm.take(limit, state, more)
    state.migrated = true
  end
end
