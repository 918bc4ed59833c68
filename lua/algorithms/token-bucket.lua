-- Token bucket. Parameters: unit, speed, tick, interval (ticks), step (ticks: 1, or the interval).
-- A token weighs `unit`; `speed` of that weight flows in a tick, every `step` ticks.
-- Stored: five doubles: level, time (the tick of the last refill), unit, speed, tick.

do
  local function until_filled(p, s, level)
    local ticks = ceil((level - s.level) / p[2])
    return (s.time + ceil(ticks / p[5]) * p[5]) * p[3] - s.now
  end

  local function reset(p, s)
    local capacity = p.quota * p[1]
    return s.level < capacity and until_filled(p, s, capacity) or 0
  end

  algorithms['token-bucket'] = {
    open = function(p, raw, now)
      local unit, speed, tick_length, interval, step = p[1], p[2], p[3], p[4], p[5]
      local tick = floor(now / tick_length)
      local capacity = p.quota * unit
      local s = { now = now, moved = false, level = capacity, time = tick }
      if not raw then return s end
      local level, time, old_unit, old_speed, old_length = unpack_doubles('<ddddd', raw)
      if old_unit ~= unit or old_speed ~= speed or old_length ~= tick_length then
        local old_tick = floor(now / old_length)
        level = floor((level + max(0, old_tick - time) * old_speed) / old_unit * unit)
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
    give = function(p, s, units) s.level = min(p.quota * p[1], s.level + units * p[1]) end,
    remaining = function(p, s) return floor(s.level / p[1]) end,
    retry = function(p, s, cost) return until_filled(p, s, cost * p[1]) end,
    reset = reset,
    save = function(p, s, key) put(key, pack('<ddddd', s.level, s.time, p[1], p[2], p[3]), reset(p, s)) end,
  }
end
