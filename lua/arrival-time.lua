-- The core of gcra, token-bucket and leaky-bucket: a theoretical arrival time, kept exactly as the weight that is owed at a tick.
-- Parameters: unit, speed, tick, interval (ticks), step (ticks; 1 unless given). A unit weighs `unit`; `speed` of that weight
-- flows off a tick, at the end of every `step` ticks.
-- Stored: five doubles: time (a tick), debt, unit, speed, step; the step is negative where a tick is a millisecond. What is owed
-- is owed under any quota: a smaller one makes nobody owe less.
-- A counter that `grows_empty` begins with what it had when its quota grows, and the rest has to flow in. For that it keeps the
-- largest quota that it was charged or refused under, as a single-precision number, which takes no more memory.

local function arrival_time(grows_empty)
  local layout = grows_empty and '<dddddf' or '<ddddd'

  -- The tick at which a weight has flowed off.
  local function flowed(p, s, weight)
    local ticks, step = max(0, ceil(weight / p[2])), p[5]
    if step and step > 1 then ticks = ceil(ticks / step) * step end
    return s.time + ticks
  end

  local function open(p, raw, now, _, s)
    local unit, speed, tick_length, interval, step = p[1], p[2], p[3], p[4], p[5] or 1
    local tick = floor(now / tick_length)
    s = s or {}
    s.now, s.moved, s.debt, s.time = now, false, 0, tick
    if grows_empty then s.burst = p.quota <= 2 ^ 24 and p.quota or (unpack_doubles('<f', pack('<f', p.quota))) end
    if not raw then return s end
    local time, debt, old_unit, old_speed, old_step, burst = unpack_doubles(layout, raw)
    if old_unit ~= unit or old_speed ~= speed or old_step ~= (tick_length == 1 and step or -step) then
      local old_length = old_step < 0 and 1000 or 1
      old_step = old_step < 0 and -old_step or old_step
      local elapsed = max(0, floor(now / old_length) - time)
      local part = old_step > 1 and elapsed % old_step or 0
      debt = max(0, debt - (elapsed - part) * old_speed)
      if debt > 0 then debt = in_proportion(debt, unit, old_unit) end
      -- Of an interval that is not over nothing has flowed, but it has begun: unless the new ones are shorter, it goes on.
      local from = (time + elapsed) * old_length
      if old_step > 1 and step > 1 then from = from - part * old_length else from = max(now, from) end
      time = ceil(from / tick_length)
      local over = step > 1 and max(0, tick - time) or 0
      time = time + over - over % step
      s.moved = true
    end
    if tick >= time then
      local elapsed = tick - time
      if step > 1 then elapsed = elapsed - elapsed % step end
      debt = max(0, debt - elapsed * speed)
      -- Where all flows at once, the next interval begins with the request that finds nothing owed.
      time = debt == 0 and tick or time + elapsed
    elseif time - tick >= interval then
      time = tick
      s.moved = true
    end
    if grows_empty and debt > 0 then
      if burst < s.burst then
        debt = debt + (s.burst - burst) * unit
        s.moved = true
      else
        s.burst = burst
      end
    end
    s.debt, s.time = debt, time
    return s
  end

  local function fits(p, s, cost) return s.debt + cost * p[1] <= p.quota * p[1] end

  local function take(p, s, cost) s.debt = s.debt + cost * p[1] end

  local function covered(p, s) return flowed(p, s, s.debt - p.quota * p[1]) end

  -- What was reserved behind the units stays, and what may have flowed off of them since they could be used has: all that flows
  -- from then until no more is owed than the quota.
  local function give(p, s, units, place, at)
    local usable = max(place, floor(at / p[3]))
    local gone, step = usable < 0 and 0 or max(0, covered(p, s) - usable), p[5]
    if step and step > 1 then gone = ceil(gone / step) * step end
    s.debt = max(0, s.debt - max(0, units * p[1] - gone * p[2]))
  end

  -- Beyond, weights are no whole numbers.
  local function owable(p, s, cost) return s.debt + cost * p[1] <= MAX_OWED end

  local function scale_used(p, s, to, from) s.debt = min(in_proportion(s.debt, to, from), MAX_OWED) end

  local function remaining(p, s) return floor((p.quota * p[1] - s.debt) / p[1]) end

  local function retry(p, s, cost)
    return flowed(p, s, s.debt + (cost * p[1] - p.quota * p[1])) * p[3] - s.now
  end

  local function reset(p, s) return s.debt > 0 and flowed(p, s, s.debt) * p[3] - s.now or 0 end

  local function raw(p, s)
    local step = p[5] or 1
    return pack(layout, s.time, s.debt, p[1], p[2], p[3] == 1 and step or -step, s.burst)
  end

  return {
    open = open,
    fits = fits,
    take = take,
    give = give,
    owable = owable,
    covered = covered,
    scale_used = scale_used,
    remaining = remaining,
    retry = retry,
    reset = reset,
    raw = raw,
  }
end
