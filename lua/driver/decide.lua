-- Decides a check: looks at all of its limits first, then charges all of them or none.
--
-- Uses: add, add_undecided, answer, begin_block, can_reserve, has_features, keep_alive, note_charge, now, open, prolong_block, save, states,
--   values, wait_for
-- Leaves: decide, entry_costs, entry_keys, entry_limits, entry_waits, fit_most, fit_together, fitting, found,
--   together_numbers

-- The entries of the check that is being decided, and what was found about each.
local entry_limits, entry_keys, entry_costs, entry_waits = {}, {}, {}, {}
local found, fitting, delays = {}, {}, {}

-- The function that finds how many units the next check takes, if it takes as many as fit.
local fit_most

-- The function of the feature that decides which entries of the next check fit, if one does, and what it needs to know of them.
local fit_together, together_numbers

-- Decides a check, or many with the same limits and costs, whose keys are `step` apart.
local function decide(mode, count, times, step)
  local charges, reserves, begins_blocks, offset = mode.charges, mode.reserves, mode.begins_blocks, 0
  local is_estimate, withheld, taken = mode.estimates, nil, nil
  local needs_all = fit_together or fit_most
  for _ = 1, times do
    local allowed, decided = true, true
    local limit, cost, state, fits, algorithm
    -- From the last entry to the first, of which all is still at hand then. Most checks have no other.
    for i = count, 1, -1 do
      limit, cost, fits = entry_limits[i], entry_costs[i], nil
      local number = entry_keys[i] + offset
      local value = values[number]
      algorithm, state = limit.algorithm, limit.reused
      -- The state of the counter before, where it can: to make one for each counter takes a fifth longer.
      if state and states[number] == nil and (not value or #value == limit.plain_size) and not state.envelope then
        state.number, state.migrated = number, false
        if algorithm.open(limit, value, now, nil, state) then state = nil end
      else
        state = open(limit, number)
      end
      if not state then
        decided = false
        break
      end
      if reserves then
        fits, delays[i] = can_reserve(limit, state, cost, entry_waits[i], mode.claims)
      else
        fits = (cost <= limit.quota or algorithm.varies) and not state.blocked_until and algorithm.fits(limit, state, cost)
      end
      if i > 1 or needs_all then found[i], fitting[i] = state, fits end
      if not fits and not limit.shadow then allowed = false end
    end
    if fit_most and decided then
      taken, withheld = fit_most(count)
      allowed, cost, fits = taken > 0, entry_costs[1], fitting[1]
      add(taken)
    elseif fit_together and decided then
      allowed, withheld = fit_together(together_numbers, wait_for, count, entry_limits, entry_costs, found, fitting)
      fits = fitting[1]
    end
    for i = 1, decided and count or 0 do
      if i > 1 then
        limit, cost, state, fits = entry_limits[i], entry_costs[i], found[i], fitting[i]
        algorithm = limit.algorithm
      end
      local changed, delay, ticket = false, nil, nil
      if reserves then delay = delays[i] end
      if fits and cost > 0 and algorithm.delay then delay, ticket = algorithm.delay(limit, state, cost) end
      -- An entry of 0 units only looks, whatever the rest of its check does.
      if charges and cost > 0 then
        changed = state.migrated
        if not (fits and allowed) and algorithm.keep_for and not changed and not state.changed then keep_alive(limit, state) end
        if not fits then
          if begins_blocks and limit.counts_refused and cost <= limit.quota and not state.blocked_until then
            -- What never fits does not count, and no count grows beyond whole numbers.
            algorithm.take(limit, state, min(cost, 2 ^ 53 - 1 - (limit.quota - algorithm.remaining(limit, state))))
            changed = true
          end
          if algorithm.refuse and cost <= limit.quota and not state.blocked_until then
            changed = algorithm.refuse(limit, state, cost) or changed
          end
          if begins_blocks and limit.block_for > 0 and not state.blocked_until then
            begin_block(limit, state, cost)
            changed = true
          elseif begins_blocks and limit.strikes and state.blocked_until then
            changed = prolong_block(limit, state) or changed
          end
        elseif allowed then
          algorithm.take(limit, state, cost)
          if has_features then note_charge(limit, state, cost) end
          changed = true
          if reserves and algorithm.debt_cleared_at then ticket = algorithm.debt_cleared_at(limit, state) end
          if is_estimate and limit.estimates then delay, ticket = 0, limit.estimates:reserved(limit, state, cost) end
        end
      end
      save(limit, state, answer(limit, state, cost, fits, delay, ticket, withheld and not fits and withheld[i] or 0), changed)
    end
    if not decided then
      add_undecided()
    elseif mode.tells_time then
      add(now)
    end
    offset = offset + step
  end
  fit_together, fit_most = nil, nil
end
