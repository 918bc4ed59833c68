-- The core of gcra, token-bucket and leaky-bucket: a theoretical arrival time, kept exactly as the weight that is owed at a tick.
-- Parameters: unit, speed, tick (microseconds), interval (ticks), step (ticks; 1 unless given). A unit weighs `unit`; `speed` of
-- that weight flows off a tick, at the end of every `step` ticks.
-- Stored: five doubles: time (a tick), debt, unit, speed, step; the step is negative where a tick is a millisecond. What is owed
-- is owed under any quota: a smaller one makes nobody owe less.
-- A counter that `grows_empty` begins with what it had when its quota grows, and the rest has to flow in. For that it keeps the
-- largest quota that it was charged or refused under, as a single-precision number, which takes no more memory.
--
-- Uses: in_proportion
-- Leaves: arrival_time

local function arrival_time(grows_empty)
  local layout = grows_empty and '<dddddf' or '<ddddd'

  -- The tick at which a weight has flowed off.
  local function flowed(limit, state, weight)
    if weight <= 0 then return state.time end
    local ticks, step = weight / limit.speed, limit.step
    -- Rounded up, faster than by a call.
    ticks = ticks + -ticks % 1
    if step and step > 1 then ticks = ceil(ticks / step) * step end
    return state.time + ticks
  end

  -- What is left of a debt by now, and from when on it flows off as these parameters say.
  local function rescaled(limit, now, time, debt, old_unit, old_speed, old_step)
    local step, tick = limit.step or 1, floor(now / limit.tick)
    local old_length = old_step < 0 and 1000 or 1
    old_step = old_step < 0 and -old_step or old_step
    local elapsed = max(0, floor(now / old_length) - time)
    local part = old_step > 1 and elapsed % old_step or 0
    debt = max(0, debt - (elapsed - part) * old_speed)
    if debt > 0 then debt = in_proportion(debt, limit.unit, old_unit) end
    -- Of an interval that is not over nothing has flowed, but it has begun: unless the new ones are shorter, it goes on.
    local from = (time + elapsed) * old_length
    if old_step > 1 and step > 1 then from = from - part * old_length else from = max(now, from) end
    time = ceil(from / limit.tick)
    local over = step > 1 and max(0, tick - time) or 0
    return time + over - over % step, debt
  end

  local function open(limit, stored, now, _, state)
    local unit, speed, tick, step, full = limit.unit, limit.speed, now, limit.step or 1, limit.quota
    if limit.tick ~= 1 then tick = floor(now / limit.tick) end
    if grows_empty and full > 2 ^ 24 then full = unpack_doubles('<f', pack('<f', full)) end
    if not stored then
      state.debt, state.time = 0, tick
      if grows_empty then state.burst = full end
      return
    end
    local time, debt, old_unit, old_speed, old_step, burst = unpack_doubles(layout, stored)
    if old_unit ~= unit or old_speed ~= speed or old_step ~= (limit.tick == 1 and step or -step) then
      time, debt = rescaled(limit, now, time, debt, old_unit, old_speed, old_step)
      state.migrated = true
    end
    if tick >= time then
      local elapsed = tick - time
      if step > 1 then elapsed = elapsed - elapsed % step end
      debt = debt - elapsed * speed
      -- Where all flows at once, the next interval begins with the request that finds nothing owed.
      if debt > 0 then time = time + elapsed else debt, time = 0, tick end
    elseif time - tick >= limit.interval then
      time = tick
      state.migrated = true
    end
    if grows_empty then
      if debt > 0 and burst < full then
        debt = debt + (full - burst) * unit
        state.migrated = true
      elseif debt > 0 then
        full = burst
      end
      state.burst = full
    end
    state.debt, state.time = debt, time
  end

  local function fits(limit, state, cost) return state.debt + cost * limit.unit <= limit.quota * limit.unit end

  local function take(limit, state, cost) state.debt = state.debt + cost * limit.unit end

  local function debt_cleared_at(limit, state) return flowed(limit, state, state.debt - limit.quota * limit.unit) end

  -- What was reserved behind the units stays, and what may have flowed off of them since they could be used has: all that flows
  -- from then until no more is owed than the quota.
  local function give(limit, state, units, ticket, charged_at)
    local usable = max(ticket, floor(charged_at / limit.tick))
    local gone, step = usable < 0 and 0 or max(0, debt_cleared_at(limit, state) - usable), limit.step
    if step and step > 1 then gone = ceil(gone / step) * step end
    state.debt = max(0, state.debt - max(0, units * limit.unit - gone * limit.speed))
  end

  -- Beyond, weights are no whole numbers.
  local function can_borrow(limit, state, cost) return state.debt + cost * limit.unit <= MAX_OWED end

  local function scale_used(_, state, to, from) state.debt = min(in_proportion(state.debt, to, from), MAX_OWED) end

  local function remaining(limit, state)
    local units = (limit.quota * limit.unit - state.debt) / limit.unit
    return units - units % 1
  end

  local function retry_after(limit, state, cost)
    return flowed(limit, state, state.debt + (cost * limit.unit - limit.quota * limit.unit)) * limit.tick - state.now
  end

  -- As flowed, without a call more.
  local function reset_after(limit, state)
    local debt, step = state.debt, limit.step
    if debt == 0 then return 0 end
    local ticks = debt / limit.speed
    ticks = ticks + -ticks % 1
    if step and step > 1 then ticks = ceil(ticks / step) * step end
    return (state.time + ticks) * limit.tick - state.now
  end

  local function encode(limit, state)
    local step = limit.step or 1
    return pack(layout, state.time, state.debt, limit.unit, limit.speed, limit.tick == 1 and step or -step, state.burst)
  end

  return {
    open = open,
    fits = fits,
    take = take,
    give = give,
    can_borrow = can_borrow,
    debt_cleared_at = debt_cleared_at,
    scale_used = scale_used,
    remaining = remaining,
    retry_after = retry_after,
    reset_after = reset_after,
    encode = encode,
  }
end
