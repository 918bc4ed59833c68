-- How many units a check takes that takes as many as fit.
--
-- Uses: entry_costs, entry_limits, fit_together, fitting, found, together_numbers, wait_for
-- Leaves: make_fit_most

local function make_fit_most()
  local withheld

  -- Asks all entries for a number of units. Returns whether no limit refuses.
  local function all_fit(count, units)
    local allowed = true
    for i = 1, count do
      local limit, state = entry_limits[i], found[i]
      local algorithm = limit.algorithm
      entry_costs[i] = units
      fitting[i] = (units <= limit.quota or algorithm.varies) and not state.blocked_until and algorithm.fits(limit, state, units)
      if not fitting[i] and not limit.shadow then allowed = false end
    end
    if fit_together then
      allowed, withheld = fit_together(together_numbers, wait_for, count, entry_limits, entry_costs, found, fitting)
    end
    return allowed
  end

  -- Brings the entries to the most units that fit, up to their cost, and returns these; to one unit if none fits, and returns 0. What
  -- is left usually is the answer, which two looks confirm.
  return function(count)
    local most, left = entry_costs[1], entry_costs[1]
    for i = 1, count do
      local limit = entry_limits[i]
      if not limit.shadow then left = min(left, limit.algorithm.remaining(limit, found[i])) end
    end
    local fits, beyond, guess = 0, most + 1, left
    while beyond - fits > 1 do
      local units = guess > fits and guess < beyond and guess or floor((fits + beyond) / 2)
      if all_fit(count, units) then fits = units else beyond = units end
      guess = guess == left and left + 1 or 0
    end
    all_fit(count, max(1, fits))
    return fits, withheld
  end
end
