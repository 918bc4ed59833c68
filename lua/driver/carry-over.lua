-- What becomes of the units that were left under a smaller quota.
--
-- Uses: PROPORTIONAL, in_proportion, now
-- Leaves: carry_over

-- Opens a counter some of whose units were left under a smaller quota. Under a smaller one nobody owes less: those who still
-- decide by the larger one would find it as room.
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
    -- Who owes owes as much as before.
    more = limit.quota - quota
  elseif proportional then
    more = in_proportion(used, limit.quota, quota) - used
  end
  if more > 0 then
    algorithm.take(limit, state, more)
    state.migrated = true
  end
end
