-- Cool-down. Parameters: rest.
-- Stored: three doubles: when the first unit was charged, when all are there again, and how many were charged.

algorithms['cool-down'] = function()
  local function reset(_, s) return s.count > 0 and s.stop - s.now or 0 end

  local function raw(_, s) return pack('<ddd', s.start, s.stop, s.count) end

  return {
    size = 24,

    open = function(p, value, now)
      local rest = p[1]
      if value then
        local start, stop, count = unpack_doubles('<ddd', value)
        if count > 0 and now < stop then
          -- The rest is shorter now, or the clock was set back.
          if stop - now > rest then
            return { now = now, moved = true, start = min(start, now), stop = now + rest, count = count }
          end
          return { now = now, moved = false, start = start, stop = stop, count = count }
        end
      end
      return { now = now, moved = false, start = now, stop = now + rest, count = 0 }
    end,

    fits = function(p, s, cost) return s.count + cost <= p.quota end,

    take = function(p, s, cost)
      s.count = s.count + cost
      s.stop = s.now + p[1]
    end,

    give = function(_, s, units, _, at)
      if at < 0 or at >= s.start then s.count = max(0, s.count - units) end
    end,

    remaining = function(p, s) return p.quota - s.count end,
    retry = function(_, s) return s.stop - s.now end,
    reset = reset,
    raw = raw,
    save = function(p, s, key) put(key, raw(p, s), reset(p, s)) end,

    history = function(_, s)
      if s.count == 0 then return {} end
      return { floor(s.start / 1000), floor(s.stop / 1000), s.count }
    end,
  }
end
