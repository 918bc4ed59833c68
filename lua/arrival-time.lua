-- The core of gcra and leaky-bucket: a theoretical arrival time, kept exactly as the weight that is owed at a tick.
-- Parameters: unit, speed, tick, interval (ticks). A unit weighs `unit`; `speed` of that weight flows off a tick.
-- Stored: five doubles: time (a tick), debt, unit, speed, tick. A negative tick says that more is owed than the quota,
-- since units were reserved or charged as a penalty; else what is owed beyond a quota that shrank is forgiven.

local function arrival_time()
  local function open(p, raw, now, _, s)
    local unit, speed, tick_length, interval = p[1], p[2], p[3], p[4]
    local tick = floor(now / tick_length)
    s = s or {}
    s.now, s.moved, s.debt, s.time = now, false, 0, tick
    if not raw then return s end
    local time, debt, old_unit, old_speed, old_length = unpack_doubles('<ddddd', raw)
    local overdrawn = old_length < 0
    if overdrawn then old_length = -old_length end
    if old_unit ~= unit or old_speed ~= speed or old_length ~= tick_length then
      local old_tick = floor(now / old_length)
      debt = min(ceil(max(0, debt - max(0, old_tick - time) * old_speed) / old_unit * unit), MAX_OWED)
      time = tick + ceil(max(0, time - old_tick) * old_length / tick_length)
      s.moved = true
    end
    if tick >= time then
      debt = max(0, debt - (tick - time) * speed)
      time = tick
    elseif time - tick >= interval then
      time = tick
      s.moved = true
    end
    if debt > p.quota * unit and not overdrawn then
      debt = p.quota * unit
      s.moved = true
    end
    s.debt, s.time = debt, time
    return s
  end

  local function fits(p, s, cost) return s.debt + cost * p[1] <= p.quota * p[1] end

  local function take(p, s, cost) s.debt = s.debt + cost * p[1] end

  local function covered(p, s) return s.time + max(0, ceil((s.debt - p.quota * p[1]) / p[2])) end

  -- The weight that comes back of units: what was reserved after those which were to be used at the tick `place` stays, and
  -- what may have flowed off of them by now has.
  local function returned(p, s, units, place, at)
    local gone = 0
    if place > s.time then
      gone = max(0, covered(p, s) - place)
    elseif at >= 0 then
      gone = max(0, s.time - max(place, floor(at / p[3])))
    end
    return max(0, units * p[1] - gone * p[2])
  end

  local function give(p, s, units, place, at) s.debt = max(0, s.debt - returned(p, s, units, place, at)) end

  -- Beyond, weights are no whole numbers.
  local function owable(p, s, cost) return s.debt + cost * p[1] <= MAX_OWED end

  local function remaining(p, s) return floor((p.quota * p[1] - s.debt) / p[1]) end

  local function until_flowed(p, s, weight) return (s.time + ceil(weight / p[2])) * p[3] - s.now end

  local function retry(p, s, cost) return until_flowed(p, s, s.debt + (cost * p[1] - p.quota * p[1])) end

  local function reset(p, s) return s.debt > 0 and until_flowed(p, s, s.debt) or 0 end

  local function raw(p, s)
    local tick_length = s.debt > p.quota * p[1] and -p[3] or p[3]
    return pack('<ddddd', s.time, s.debt, p[1], p[2], tick_length)
  end

  return {
    open = open,
    fits = fits,
    take = take,
    give = give,
    owable = owable,
    covered = covered,
    remaining = remaining,
    retry = retry,
    reset = reset,
    raw = raw,
  }
end
