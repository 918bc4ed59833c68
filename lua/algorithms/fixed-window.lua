-- Fixed window. Parameters: interval. Stored: four doubles: count, start, end of the window, when it was last charged.

do
  local function reset(p, s) return s.count > 0 and s.stop - s.now or 0 end

  algorithms['fixed-window'] = {
    open = function(p, raw, now)
      local interval = p[1]
      if raw then
        local count, start, stop, last = unpack_doubles('<dddd', raw)
        stop = min(stop, start + interval)
        if last - now >= interval then
          return { now = now, moved = true, count = count, start = now, stop = now + interval, last = now }
        end
        if now < stop then
          return { now = now, moved = false, count = count, start = start, stop = stop, last = last }
        end
      end
      return { now = now, moved = false, count = 0, start = now, stop = now + interval, last = now }
    end,

    fits = function(p, s, cost) return s.count + cost <= p.quota end,
    take = function(p, s, cost)
      s.count = s.count + cost
      s.last = max(s.last, s.now)
    end,
    give = function(p, s, units) s.count = max(0, s.count - units) end,
    remaining = function(p, s) return max(0, p.quota - s.count) end,
    retry = function(p, s) return s.stop - s.now end,
    reset = reset,
    save = function(p, s, key) put(key, pack('<dddd', s.count, s.start, s.stop, s.last), reset(p, s)) end,
  }
end
