-- The core of fixed-window and calendar-window: units counted between two times.
-- Stored: four doubles: start and end of the window, count, when it was last charged.

local window_count = {}

function window_count.fits(p, s, cost) return s.count + cost <= p.quota end

function window_count.take(p, s, cost)
  s.count = s.count + cost
  s.last = max(s.last, s.now)
end

-- Units that were charged in another window are none of this one.
function window_count.give(p, s, units, place, at)
  if at < 0 or at >= s.start then s.count = max(0, s.count - units) end
end

function window_count.remaining(p, s) return p.quota - s.count end

function window_count.retry(p, s) return s.stop - s.now end

function window_count.reset(p, s) return s.count > 0 and s.stop - s.now or 0 end

function window_count.raw(s) return pack('<dddd', s.start, s.stop, s.count, s.last) end
