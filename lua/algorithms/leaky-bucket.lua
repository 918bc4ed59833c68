-- Leaky bucket that shapes. Parameters: arrival-time.lua, with a quota of queue + 1.
-- Stored: as arrival-time.lua, then two doubles a free place: the tick at which it leaves, its units. A place is free if its
-- request went away while others waited behind it; the earliest comes first. There is none while more is owed than the quota.

algorithms['leaky-bucket'] = function()
  local arrival_time = arrival_time()

  local FIXED = 40 -- bytes before the free places

  -- The earliest free place that is large enough.
  local function place_for(s, cost)
    for i, place in ipairs(s.free) do
      if place.units >= cost then return i end
    end
  end

  -- The tick at which the last unit of the queue would leave if `cost` units joined its end.
  local function departure(p, s, cost) return s.time + ceil((s.debt + (cost - 1) * p[1]) / p[2]) end

  -- Takes units off the end of the queue, and the places there that are free already.
  local function shorten(p, s, units)
    arrival_time.give(p, s, units, -1, -1)
    while #s.free > 0 do
      local last, stop = s.free[#s.free], departure(p, s, 0)
      if last.time < stop then return end
      if last.time == stop then arrival_time.give(p, s, last.units, -1, -1) end
      s.free[#s.free] = nil
    end
  end

  return {
    open = function(p, raw, now)
      local s = arrival_time.open(p, raw and string.sub(raw, 1, FIXED), now)
      s.free = {}
      if raw and not s.moved then
        for at = FIXED + 1, #raw, 16 do
          local time, units = unpack_doubles('<dd', raw, at)
          if time >= s.time then s.free[#s.free + 1] = { time = time, units = units } end
        end
      end
      return s
    end,

    fits = function(p, s, cost) return arrival_time.fits(p, s, cost) or place_for(s, cost) ~= nil end,

    take = function(p, s, cost)
      local i = place_for(s, cost)
      if i then
        s.free[i].units = s.free[i].units - cost
        if s.free[i].units == 0 then table.remove(s.free, i) end
        return
      end
      if not arrival_time.fits(p, s, cost) then
        -- A penalty that fits nowhere takes what is free first.
        for _, place in ipairs(s.free) do cost = max(0, cost - place.units) end
        s.free = {}
      end
      arrival_time.take(p, s, cost)
    end,

    give = function(p, s, units, place)
      if place < 0 or place == departure(p, s, 0) then
        shorten(p, s, units)
      elseif place >= s.time and s.debt > 0 then
        -- A penalty is settled before anyone gets the place.
        local settled = min(units, ceil(max(0, s.debt - p.quota * p[1]) / p[1]))
        s.debt = s.debt - settled * p[1]
        if settled == units then return end
        local i = 1
        while s.free[i] and s.free[i].time <= place do i = i + 1 end
        table.insert(s.free, i, { time = place, units = units - settled })
      end
    end,

    remaining = function(p, s)
      local most = arrival_time.remaining(p, s)
      for _, place in ipairs(s.free) do most = max(most, min(place.units, p.quota)) end
      return most
    end,

    delay = function(p, s, cost)
      local i = place_for(s, cost)
      local leaves = i and s.free[i].time or departure(p, s, cost)
      return max(0, leaves * p[3] - max(s.now, s.time * p[3])), leaves
    end,

    scale_used = arrival_time.scale_used,
    retry = arrival_time.retry,
    reset = arrival_time.reset,

    save = function(p, s, key)
      local raw = { arrival_time.raw(p, s) }
      for i, place in ipairs(s.free) do raw[i + 1] = pack('<dd', place.time, place.units) end
      put(key, table.concat(raw), arrival_time.reset(p, s))
    end,
  }
end
