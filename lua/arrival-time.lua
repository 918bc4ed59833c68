-- The core of gcra, token-bucket and leaky-bucket: a theoretical arrival time, kept exactly as the weight that is owed at a tick.
-- Parameters: unit, speed, tick (microseconds), interval (ticks), step (ticks; 1 unless given). A unit weighs `unit`; `speed` of
-- that weight flows off a tick, at the end of every `step` ticks.
-- Stored: five doubles: time (a tick), debt, unit, speed, step; the step is negative where a tick is a millisecond. What is owed
-- is owed under any quota: a smaller one makes nobody owe less.
-- A key may live longer than its state needs, and then keeps its time to live when it is written. In the place of a step of 1 a
-- part of 1 says until when it lives: that fraction of 2^53 microseconds. The state is the same. A version that does not know this
-- takes it for other parameters, by which as much is owed.
-- A counter that `grows_empty` begins with what it had when its quota grows, and the rest has to flow in. For that it keeps the
-- largest quota that it was charged or refused under, as a single-precision number, which takes no more memory.
--
-- Uses: in_proportion
-- Leaves: arrival_time

local function arrival_time(grows_empty)
  -- The rest of a debt by now, and the time from which it drains by these parameters.
  local function rescaled(limit, now, time, debt, old_unit, old_speed, old_step)
    local step, tick = limit.step or 1, floor(now / limit.tick)
    local old_length = old_step < 0 and 1000 or 1
    old_step = old_step < 0 and -old_step or old_step
    local elapsed = max(0, floor(now / old_length) - time)
    local part = old_step > 1 and elapsed % old_step or 0
    debt = max(0, debt - (elapsed - part) * old_speed)
    if debt > 0 then debt = in_proportion(debt, limit.unit, old_unit) end
    -- An interval that is not over has drained nothing, but it has begun: it goes on, unless the new intervals are shorter.
    local from = (time + elapsed) * old_length
    if old_step > 1 and step > 1 then from = from - part * old_length else from = max(now, from) end
    time = ceil(from / limit.tick)
    local over = step > 1 and max(0, tick - time) or 0
    return time + over - over % step, debt
  end

  local function begin(limit, state, now)
    state.debt, state.time, state.lives_until = 0, now, 0
    if limit.tick ~= 1 then state.time = floor(now / limit.tick) end
    if grows_empty then state.burst = limit.quota end
    return true
  end

  -- Whether the value was stored under these parameters.
  local function decode(limit, state, value)
    local unit, speed, step, own = 0, 0, 0, limit.step or 1
    state.time, state.debt, unit, speed, step, state.burst = unpack_doubles(grows_empty and '<dddddf' or '<ddddd', value)
    state.lives_until = 0
    if limit.tick ~= 1 then own = -own end
    local part = step * own
    if part > 0 and part < 1 and own * own == 1 then
      state.lives_until = part * 2 ^ 53
      step = own
    end
    return unit == limit.unit and speed == limit.speed and step == own
  end

  -- Drains what is due by now, unless the clock was set back by an interval or more.
  local function advance(limit, state, now)
    local tick, is_on_time = now, true
    if limit.tick ~= 1 then tick = floor(now / limit.tick) end
    if tick >= state.time then
      local elapsed = tick - state.time
      if limit.step and limit.step > 1 then elapsed = elapsed - elapsed % limit.step end
      state.debt = state.debt - elapsed * limit.speed
      -- If everything drains at once, the next interval begins with the request that finds no debt.
      if state.debt > 0 then
        state.time = state.time + elapsed
      else
        state.debt, state.time = 0, tick
      end
    else
      is_on_time = state.time - tick < limit.interval
    end
    return is_on_time
  end

  -- The quota to store, if there is a debt under a smaller one.
  local function grown_quota(limit, state)
    local full, grown = limit.quota, nil
    if grows_empty then
      if full > 2 ^ 24 then full = unpack_doubles('<f', pack('<f', full)) end
      if state.debt == 0 then
        state.burst = full
      elseif state.burst < full then
        grown = full
      end
    end
    return grown
  end

  local function resume(limit, state, now, value)
    local is_plain = #value == (grows_empty and 44 or 40)
    if is_plain then
      is_plain = decode(limit, state, value)
    end
    if is_plain then
      is_plain = advance(limit, state, now)
    end
    if is_plain then
      local grown = grown_quota(limit, state)
      is_plain = not grown
    end
    return is_plain
  end

  local function open(limit, stored, now, _, state)
    if stored then
      if not decode(limit, state, stored) then
        local _, _, unit, speed, step = unpack_doubles('<ddddd', stored)
        state.time, state.debt = rescaled(limit, now, state.time, state.debt, unit, speed, step)
        state.migrated = true
      end
      if not advance(limit, state, now) then
        state.time = floor(now / limit.tick)
        state.migrated = true
      end
    else
      begin(limit, state, now)
    end
    local grown = grown_quota(limit, state)
    if grown then
      state.debt = state.debt + (grown - state.burst) * limit.unit
      state.burst = grown
      state.migrated = true
    end
    -- Writing it sets a new time to live.
    state.lives_until = 0
  end

  local function fits(limit, state, cost) return state.debt + cost * limit.unit <= limit.quota * limit.unit end

  local function take(limit, state, cost) state.debt = state.debt + cost * limit.unit end

  local function debt_cleared_at(limit, state)
    local ticks, step = max(0, state.debt - limit.quota * limit.unit) / limit.speed, limit.step
    ticks = ticks + -ticks % 1
    if step and step > 1 then ticks = ceil(ticks / step) * step end
    return state.time + ticks
  end

  -- What was reserved behind the units stays. What may have drained of them since they could be used has drained: all that drains
  -- from then until no more is owed than the quota.
  local function give(limit, state, units, ticket, charged_at)
    local usable = max(ticket, floor(charged_at / limit.tick))
    local gone, step = usable < 0 and 0 or max(0, debt_cleared_at(limit, state) - usable), limit.step
    if step and step > 1 then gone = ceil(gone / step) * step end
    state.debt = max(0, state.debt - max(0, units * limit.unit - gone * limit.speed))
  end

  -- Beyond that, weights are not whole numbers.
  local function can_owe(limit, state, cost) return state.debt + cost * limit.unit <= MAX_OWED end

  local function scale_used(_, state, to, from) state.debt = min(in_proportion(state.debt, to, from), MAX_OWED) end

  local function remaining(limit, state)
    local units = (limit.quota * limit.unit - state.debt) / limit.unit
    return units - units % 1
  end

  local function retry_after(limit, state, cost)
    local ticks = max(0, state.debt + (cost * limit.unit - limit.quota * limit.unit)) / limit.speed
    -- Rounds up without a function call, which is faster.
    ticks = ticks + -ticks % 1
    if limit.step and limit.step > 1 then ticks = ceil(ticks / limit.step) * limit.step end
    return (state.time + ticks) * limit.tick - state.now
  end

  local function reset_after(limit, state)
    local micros = 0
    if state.debt > 0 then
      local ticks = state.debt / limit.speed
      ticks = ticks + -ticks % 1
      if limit.step and limit.step > 1 then ticks = ceil(ticks / limit.step) * limit.step end
      micros = (state.time + ticks) * limit.tick - state.now
    end
    return micros
  end

  local function outlives(_, state, micros) return state.now + micros <= state.lives_until end

  -- An eighth of the interval longer than necessary, at most 10 seconds, so that many keys have the same time to live.
  local function extended(limit, state, micros)
    local longer = min(limit.interval * limit.tick / 8, 10000000)
    if longer >= 4000 and not (limit.step and limit.step > 1) and state.now + micros + longer < 2 ^ 53 then
      micros = micros + longer
      micros = micros - micros % (longer / 4)
      -- Times to live are whole milliseconds of the server's clock.
      state.lives_until = state.now + micros - 1000
    else
      state.lives_until = 0
    end
    return micros
  end

  local function encode(limit, state)
    local step = limit.step or 1
    if state.lives_until > 0 then step = state.lives_until / 2 ^ 53 end
    if limit.tick ~= 1 then step = -step end
    return pack(grows_empty and '<dddddf' or '<ddddd', state.time, state.debt, limit.unit, limit.speed, step, state.burst)
  end

  -- The part of the value that changes, and its offset.
  local function changed(limit, state)
    local bytes = ''
    if grows_empty then
      bytes = encode(limit, state)
    else
      bytes = pack('<dd', state.time, state.debt)
    end
    return '0', bytes
  end

  return {
    open = open,
    fits = fits,
    take = take,
    give = give,
    can_owe = can_owe,
    debt_cleared_at = debt_cleared_at,
    scale_used = scale_used,
    remaining = remaining,
    retry_after = retry_after,
    reset_after = reset_after,
    encode = encode,
  }
end
