-- The operations on one counter besides checks.
--
-- Uses: BLOCK, BLOCKED_FOR, CREDIT, HISTORY, LEARN, LEARN_RATE, OF_FEATURE, PENALIZE, REFUND, RELEASE, RENEW, SETTLE, add,
--   add_undecided, claims, feature_of, has_features, has_operations, learn, learn_rate, milliseconds, note_charge, note_correction, now, open, save, set_block,
--   time_to_live, values, wait_for
-- Leaves: operate

local operate

if has_operations then
  -- Each returns whether it changed the counter.
  local tools = { add = add, values = values, wait_for = wait_for }
  local operations = {
    -- An operation of its own that a feature has.
    [OF_FEATURE] = function(limit, state, name, ...) return feature_of(name).operate(limit, state, tools, ...) end,

    -- A refund of 0 units writes down what has lapsed, and converts the counter to changed parameters: the reply 0 means that more has lapsed.
    [REFUND] = function(limit, state, units, ticket, charged_at)
      if units == 0 then
        add(state.more_lapsed and 0 or 1)
        return state.lapsed ~= nil or state.migrated
      end
      limit.algorithm.give(limit, state, units, ticket, charged_at)
      if has_features then note_correction(limit, state, -units, charged_at) end
      add(1)
      return true
    end,

    [PENALIZE] = function(limit, state, units)
      local algorithm = limit.algorithm
      local left = (algorithm.remaining_for_all or algorithm.remaining)(limit, state)
      units = max(0, min(units, limit.quota + left))
      algorithm.take(limit, state, units)
      if has_features then note_charge(limit, state, units) end
      add(1)
      return true
    end,

    [BLOCK] = function(_, state, duration)
      local offences = state.envelope and state.envelope.offences
      local was_blocked = state.blocked_until or offences
      set_block(state, duration, offences)
      add(was_blocked and 2 or 1)
      return true
    end,

    [RENEW] = function(limit, state, units, ticket)
      local algorithm = limit.algorithm
      local held = algorithm.renew and algorithm.renew(limit, state, units, ticket)
      add(held and 1 or 0)
      return held
    end,

    [HISTORY] = function(limit, state)
      local windows = limit.algorithm.history(limit, state, KEYS[state.number])
      add(#windows / 3)
      for _, value in ipairs(windows) do add(value) end
    end,

    [BLOCKED_FOR] = function(_, state)
      add(state.blocked_until and milliseconds(state.blocked_until - now) or 0)
    end,

    [RELEASE] = function(...) return claims.release(...) end,

    [SETTLE] = function(limit, state, units, ticket, charged_at, actual)
      local is_known = limit.estimates:settled(limit, state, note_correction, units, ticket, charged_at, actual)
      add(is_known and 1 or 0)
      return is_known
    end,

    -- Once for each identifier, which the key with this number remembers.
    [CREDIT] = function(limit, state, units, number, keep)
      local algorithm, is_known = limit.algorithm, number > 0 and values[number]
      if not is_known then
        algorithm.credit(limit, state, units)
        if number > 0 then
          values[number] = '1'
          redis.call('SET', KEYS[number], '1', 'PX', time_to_live(keep))
        end
      else
        -- A write, so that replicas that confirm it have everything written before it, by anyone.
        local left = redis.call('PTTL', KEYS[number])
        if left > 0 then redis.call('PEXPIRE', KEYS[number], left) end
      end
      add(algorithm.credits(limit, state))
      return not is_known
    end,

    [LEARN] = function(limit, state, ...)
      local changed = learn(limit, state, ...)
      add(1)
      return changed
    end,

    [LEARN_RATE] = function(limit, state, number, remaining, reset, age, tag, units, instance, block, asking, rate_number, ...)
      local changed = learn(limit, state, number, remaining, reset, age, tag, units, instance, block, asking, -1)
      local at_once = tag >= 0 and 1 or 0
      return learn_rate(limit, state, rate_number, remaining, reset, age, at_once, block, ...) or changed
    end,
  }

  function operate(operation, limit, number, ...)
    -- Windows that are read lack all that has lapsed; nothing is written.
    local state = open(limit, number, operation == HISTORY)
    if not state then return add_undecided() end
    local changed = operations[operation](limit, state, ...)
    save(limit, state, limit.algorithm.reset_after(limit, state), changed)
  end
end
