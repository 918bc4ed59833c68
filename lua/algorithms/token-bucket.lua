-- Token bucket. Parameters: unit, speed, tick, interval (ticks), step (ticks: 1, or the interval).
-- A token weighs `unit`; `speed` of that weight flows in a tick, every `step` ticks.
-- Stored: five doubles: time (the tick of the last refill), level, unit, speed, tick. The level is less than nothing if
-- units were reserved or charged as a penalty.

algorithms['token-bucket'] = function()
  -- The tick at which the bucket holds a level that it does not hold yet.
  local function filled(p, s, level)
    local ticks = ceil((level - s.level) / p[2])
    return s.time + ceil(ticks / p[5]) * p[5]
  end

  local function until_filled(p, s, level) return filled(p, s, level) * p[3] - s.now end

  local function covered(p, s) return s.level < 0 and filled(p, s, 0) or s.time end

  local function reset(p, s)
    local capacity = p.quota * p[1]
    return s.level < capacity and until_filled(p, s, capacity) or 0
  end

  local function raw(p, s) return pack('<ddddd', s.time, s.level, p[1], p[2], p[3]) end

  return {
    size = 40,
    open = function(p, raw, now, _, s)
      local unit, speed, tick_length, interval, step = p[1], p[2], p[3], p[4], p[5]
      local tick = floor(now / tick_length)
      local capacity = p.quota * unit
      s = s or {}
      s.now, s.moved, s.level, s.time = now, false, capacity, tick
      if not raw then return s end
      local time, level, old_unit, old_speed, old_length = unpack_doubles('<ddddd', raw)
      if old_unit ~= unit or old_speed ~= speed or old_length ~= tick_length then
        local old_tick = floor(now / old_length)
        level = max(floor((level + max(0, old_tick - time) * old_speed) / old_unit * unit), -MAX_OWED)
        time = tick + ceil(max(0, time - old_tick) * old_length / tick_length)
        s.moved = true
      end
      if tick >= time then
        local elapsed = tick - time - (tick - time) % step
        level = level + elapsed * speed
        time = time + elapsed
      elseif time - tick >= interval then
        time = tick
        s.moved = true
      end
      if level >= capacity then
        level = capacity
        time = max(tick, time)
      end
      s.level, s.time = level, time
      return s
    end,

    fits = function(p, s, cost) return cost * p[1] <= s.level end,
    take = function(p, s, cost) s.level = s.level - cost * p[1] end,
    -- What was reserved after units which were to be used at the tick `place` stays; what may have flowed in for them by now
    -- has.
    give = function(p, s, units, place, at)
      local gone = 0
      if place > s.time then
        gone = covered(p, s) - place
      elseif at >= 0 then
        gone = ceil((s.time - max(place, floor(at / p[3]))) / p[5]) * p[5]
      end
      s.level = min(p.quota * p[1], s.level + max(0, units * p[1] - max(0, gone) * p[2]))
    end,
    covered = covered,
    owable = function(p, s, cost) return cost * p[1] - s.level <= MAX_OWED end,
    remaining = function(p, s) return floor(s.level / p[1]) end,
    retry = function(p, s, cost) return until_filled(p, s, cost * p[1]) end,
    reset = reset,
    lives = reset,
    raw = raw,
    save = function(p, s, key) put(key, raw(p, s), reset(p, s)) end,
  }
end
