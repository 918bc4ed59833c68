-- The core of fixed-window and calendar-window: units counted between two times.
-- Stored: four doubles: start and end of the window, count, when it was last charged.

local function window_count()
  local function fits(p, s, cost) return s.count + cost <= p.quota end

  local function take(p, s, cost)
    s.count = s.count + cost
    s.last = max(s.last, s.now)
  end

  -- Units that were charged in another window are none of this one.
  local function give(p, s, units, place, at)
    if at < 0 or at >= s.start then s.count = max(0, s.count - units) end
  end

  local function remaining(p, s) return p.quota - s.count end

  local function retry(p, s) return s.stop - s.now end

  local function reset(p, s) return s.count > 0 and s.stop - s.now or 0 end

  local function raw(_, s) return pack('<dddd', s.start, s.stop, s.count, s.last) end

  return {
    fits = fits,
    take = take,
    give = give,
    remaining = remaining,
    retry = retry,
    reset = reset,
    raw = raw,
  }
end
