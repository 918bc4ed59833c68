-- Sliding window of slices. Parameters: interval, slices, length of a slice.
-- Stored: a MessagePack array: length, absolute number of the newest slice, the counts of as many slices as the interval has and
-- of one more, from the newest on. What is not charged or given back stays in the slices that it was stored in; a refusal under a
-- longer interval stores it with as many of them as that takes.

algorithms['sliding-window'] = function()
  local MOST_SLICES = 1000

  local function until_slice_ends(p, s, age) return (s.newest - age + 1) * p[3] - 1 + p[1] - s.now end

  local function reset(p, s)
    if s.total == 0 then return 0 end
    local age = 0
    while s.counts[age + 3] == 0 do age = age + 1 end
    return until_slice_ends(p, s, age)
  end

  local function empty(length, newest, slices)
    local counts = { length, newest }
    for i = 3, slices + 3 do counts[i] = 0 end
    return counts
  end

  -- What was stored, with the slices that it takes until its units count no longer, if it has fewer: of the same length, or of
  -- a multiple where there were too many. What had left by the slices that it has does not come back.
  local function lengthened(p, old, now)
    local length, newest, slices = old[1], old[2], #old - 3
    local span, reach = length * slices, p[1] + p[3]
    if reach <= span then return nil end
    local factor = max(1, ceil(reach / (length * MOST_SLICES)))
    local first = floor(newest / factor)
    local kept = empty(length * factor, first, ceil(reach / (length * factor)))
    local left = max(now, newest * length) - span
    for age = 0, slices do
      local count, number = old[age + 3], newest - age
      if count > 0 and (number + 1) * length - 1 > left then
        local at = first - floor(number / factor) + 3
        kept[at] = kept[at] + count
      end
    end
    return kept
  end

  -- Puts what was stored into slices of these parameters.
  local function translate(p, s, old, is_same, set_back)
    local slices, length, time = p[2], p[3], max(s.now, old[2] * old[1])
    local oldest, latest = time - p[1], floor(time / length)
    if not set_back then s.ahead = s.newest - latest end
    local counts = empty(length, s.newest, slices + s.ahead)
    for age = 0, #old - 3 do
      local count = old[age + 3]
      if count > 0 then
        local number = old[2] - age
        -- A slice of another length counts at its last microsecond, which may be still to come.
        if not is_same then number = min(floor(((number + 1) * old[1] - 1) / length), latest + MOST_SLICES) end
        if (number + 1) * length - 1 > oldest then
          local at = set_back and 3 or s.newest - number + 3
          counts[at] = counts[at] + count
          s.total = s.total + count
        end
      end
    end
    return counts
  end

  -- Before anything is charged or given back: nothing is stored for slices that are still to come, or the time would be theirs.
  local function settle(s)
    s.kept = nil
    if s.ahead == 0 then return end
    local counts = { s.counts[1], s.newest - s.ahead, 0 }
    for i = 3, #s.counts do
      local at = max(3, i - s.ahead)
      counts[at] = (counts[at] or 0) + s.counts[i]
    end
    s.counts, s.newest, s.ahead = counts, counts[2], 0
  end

  return {
    open = function(p, raw, now)
      local interval, slices, length = p[1], p[2], p[3]
      local current = floor(now / length)
      local s = { now = now, moved = false, newest = current, total = 0, ahead = 0 }
      if not raw then
        s.counts = empty(length, current, slices)
        return s
      end
      local old = cmsgpack.unpack(raw)
      local is_same = old[1] == length and #old - 3 == slices
      if not is_same then
        s.kept = lengthened(p, old, now)
        s.moved = s.kept ~= nil
        old = s.kept or old
        s.kept = old
      end
      local newest = old[2]
      if not is_same then
        -- No unit came later than now, or than the start of the newest slice while the clock catches up.
        local latest = floor(max(now, newest * old[1]) / length)
        newest = min(floor(((newest + 1) * old[1] - 1) / length), latest + MOST_SLICES)
      end
      s.newest = max(current, newest)
      -- When in its slice the last unit came is not known: it may have been at the end.
      local set_back = (s.newest + 1) * length - 1 - now >= interval
      if is_same and newest == s.newest and not set_back then
        s.counts = old
        local age, oldest = slices, max(now, newest * length) - interval
        while (newest - age + 1) * length - 1 <= oldest do
          old[age + 3] = 0
          age = age - 1
        end
        for i = 3, age + 3 do s.total = s.total + old[i] end
        return s
      end
      s.counts = translate(p, s, old, is_same, set_back)
      if set_back then s.newest, s.counts[2] = current, current end
      if set_back or s.total == 0 then s.kept = nil end
      s.moved = set_back or s.moved and s.kept ~= nil
      return s
    end,

    fits = function(p, s, cost) return s.total + cost <= p.quota end,
    take = function(p, s, cost)
      settle(s)
      s.counts[3] = s.counts[3] + cost
      s.total = s.total + cost
    end,
    -- The oldest units go first: what is left then counts no shorter than it should.
    give = function(p, s, units, place, at)
      if at >= 0 and (floor(at / p[3]) + 1) * p[3] - 1 <= max(s.now, s.newest * p[3]) - p[1] then return end
      settle(s)
      for i = p[2] + 3, 3, -1 do
        local given = min(units, s.counts[i])
        s.counts[i] = s.counts[i] - given
        s.total = s.total - given
        units = units - given
      end
    end,
    remaining = function(p, s) return p.quota - s.total end,
    retry = function(p, s, cost)
      local excess, age = s.total + cost - p.quota, p[2] + s.ahead + 1
      while excess > 0 do
        age = age - 1
        excess = excess - s.counts[age + 3]
      end
      return until_slice_ends(p, s, age)
    end,
    reset = reset,
    lives = reset,
    packed = true,
    save = function(p, s, key) put(key, cmsgpack.pack(s.kept or s.counts), reset(p, s)) end,

    history = function(p, s)
      s = setmetatable({}, { __index = s })
      settle(s)
      local slices = {}
      for age = p[2], 0, -1 do
        local start = (s.newest - age) * p[3]
        for _, value in ipairs({ start / 1000, (start + p[3]) / 1000, s.counts[age + 3] }) do slices[#slices + 1] = value end
      end
      return slices
    end,
  }
end
