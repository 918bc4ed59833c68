-- Leaky bucket that shapes. Parameters: arrival-time.lua, with a quota of queue + 1.
-- Stored: as arrival-time.lua; then two doubles for each stretch of free places, the tick at which the last of them leaves and
-- how many they are; then, if they are needed, three doubles: the units that a penalty added at the end of the queue beyond the
-- quota, and until which tick and at what time units were taken off the end (0: they were not).
-- A place is free if its request went away while others waited behind it; the earliest comes first. There is none while more is
-- owed than the quota.

algorithms['leaky-bucket'] = function()
  local arrival_time = arrival_time()

  local FIXED, FREE, EXTRA = 40, 16, 24 -- bytes
  local MAX_FREE = 100 -- stretches of free places

  -- The tick at which a unit leaves: that of 0 is the last one of the queue, that of 1 the one before it.
  local function tick_of(p, s, index) return s.time + ceil((s.debt - (index + 1) * p[1]) / p[2]) end

  -- Which unit leaves at a tick.
  local function index_of(p, s, tick) return ceil((s.debt - (tick - s.time) * p[2]) / p[1]) - 1 end

  -- The earliest free places that are enough.
  local function free_for(s, cost)
    for i, places in ipairs(s.free) do
      if places.units >= cost then return i end
    end
  end

  -- The tick at which a request would leave.
  local function departure(p, s, cost)
    local i = free_for(s, cost)
    if not i then return tick_of(p, s, -cost) end
    return tick_of(p, s, index_of(p, s, s.free[i].time) + s.free[i].units - cost)
  end

  -- How many of free places are still to come.
  local function still_to_come(p, s, time, units)
    return min(units, ceil((s.debt + p[2]) / p[1]) - 1 - index_of(p, s, time))
  end

  -- Takes units off the end of the queue, and the places there that are free already.
  local function shorten(p, s, units)
    s.debt = max(0, s.debt - units * p[1])
    s.penalty = max(0, s.penalty - units)
    while #s.free > 0 do
      local last = s.free[#s.free]
      local index = index_of(p, s, last.time)
      if index > 0 then return end
      s.debt = max(0, s.debt - max(0, last.units + index) * p[1])
      s.free[#s.free] = nil
    end
  end

  -- Lets others have places, the last of which leaves at a tick. A penalty is settled first.
  local function free(p, s, units, time)
    local settled = min(units, s.penalty)
    s.debt = s.debt - settled * p[1]
    s.penalty = s.penalty - settled
    if s.debt > p.quota * p[1] or settled == units then return end
    local added = { time = time, units = still_to_come(p, s, time, units - settled) }
    if added.units <= 0 then return end
    local before, behind = {}, {}
    for _, each in ipairs(s.free) do
      local is_before = each.time <= added.time
      local first, second = each, added
      if not is_before then first, second = added, each end
      local from, to = index_of(p, s, first.time), index_of(p, s, second.time)
      if from > to + second.units then
        local list = is_before and before or behind
        list[#list + 1] = each
      else
        -- They follow each other, or are the same ones.
        added = { time = second.time, units = max(from + first.units, to + second.units) - to }
      end
    end
    before[#before + 1] = added
    for _, each in ipairs(behind) do before[#before + 1] = each end
    while #before > MAX_FREE do before[#before] = nil end
    s.free = before
  end

  return {
    open = function(p, raw, now)
      local s = arrival_time.open(p, raw and string.sub(raw, 1, FIXED), now)
      s.free, s.penalty, s.cut_end, s.cut_at = {}, 0, 0, 0
      if not raw or s.moved then return s end
      local length = #raw
      if (length - FIXED) % FREE ~= 0 then
        length = length - EXTRA
        s.penalty, s.cut_end, s.cut_at = unpack_doubles('<ddd', raw, length + 1)
      end
      if s.debt > p.quota * p[1] then return s end
      s.penalty = 0
      for at = FIXED + 1, length, FREE do
        local time, units = unpack_doubles('<dd', raw, at)
        units = still_to_come(p, s, time, units)
        if units > 0 then s.free[#s.free + 1] = { time = time, units = units } end
      end
      return s
    end,

    fits = function(p, s, cost) return arrival_time.fits(p, s, cost) or free_for(s, cost) ~= nil end,

    take = function(p, s, cost)
      local i = free_for(s, cost)
      if i then
        -- The earliest of them are taken.
        s.free[i].units = s.free[i].units - cost
        if s.free[i].units == 0 then table.remove(s.free, i) end
      elseif arrival_time.fits(p, s, cost) then
        s.debt = s.debt + cost * p[1]
      else
        -- A penalty that fits nowhere takes what is free first.
        for _, places in ipairs(s.free) do cost = cost - places.units end
        cost = max(0, cost)
        s.free = {}
        s.debt = s.debt + cost * p[1]
        s.penalty = s.penalty + cost
      end
    end,

    give = function(p, s, units, place, at)
      local stop = tick_of(p, s, 0)
      if place < 0 then
        shorten(p, s, units)
        stop = tick_of(p, s, 0)
        s.cut_end = s.cut_at > 0 and min(stop, s.cut_end) or stop
        s.cut_at = s.now
        return
      end
      -- It was taken before the clock was set back, or before units were taken off the end, and is nobody's place any more.
      if floor(at / p[3]) > s.time then return end
      if s.cut_at > 0 and place > s.cut_end and at <= s.cut_at then return end
      if place == stop then
        shorten(p, s, units)
      elseif place >= s.time and place < stop and place - tick_of(p, s, index_of(p, s, place)) <= 1 then
        -- Nobody leaves between two places: the queue that such a one was in has come to its end.
        free(p, s, units, place)
      end
    end,

    remaining = function(p, s)
      local most = arrival_time.remaining(p, s)
      for _, places in ipairs(s.free) do most = max(most, min(places.units, p.quota)) end
      return most
    end,

    delay = function(p, s, cost)
      local leaves = departure(p, s, cost)
      return max(0, leaves * p[3] - max(s.now, s.time * p[3])), leaves
    end,

    scale_used = arrival_time.scale_used,
    retry = arrival_time.retry,
    reset = arrival_time.reset,

    save = function(p, s, key)
      local raw = { arrival_time.raw(p, s) }
      for i, places in ipairs(s.free) do raw[i + 1] = pack('<dd', places.time, places.units) end
      if s.penalty > 0 or s.cut_at > 0 then raw[#raw + 1] = pack('<ddd', s.penalty, s.cut_end, s.cut_at) end
      put(key, table.concat(raw), arrival_time.reset(p, s))
    end,
  }
end
