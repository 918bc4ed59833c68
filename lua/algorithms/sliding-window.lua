-- Sliding window of slices. Parameters: interval, slices, length of a slice.
-- Stored: a MessagePack array: length, absolute number of the newest slice, slices + 1 counts from the newest on.

algorithms['sliding-window'] = function()
  local function until_slice_ends(p, s, age) return (s.newest - age + 1) * p[3] - 1 + p[1] - s.now end

  local function reset(p, s)
    if s.total == 0 then return 0 end
    local age = 0
    while s[age] == 0 do age = age + 1 end
    return until_slice_ends(p, s, age)
  end

  return {
    open = function(p, raw, now)
      local interval, slices, length = p[1], p[2], p[3]
      local current = floor(now / length)
      local s = { now = now, moved = false, newest = current, total = 0 }
      for age = 0, slices do s[age] = 0 end
      if not raw then return s end
      local old = cmsgpack.unpack(raw)
      local old_length, old_newest, old_slices = old[1], old[2], #old - 3
      local moved = old_length ~= length or old_slices ~= slices
      -- A slice of another length counts at its last microsecond.
      local newest = moved and floor(((old_newest + 1) * old_length - 1) / length) or old_newest
      s.newest = max(current, newest)
      local time = max(now, s.newest * length)
      local set_back = time - now >= interval
      for age = 0, old_slices do
        local count = old[age + 3]
        if count > 0 then
          local number = old_newest - age
          if moved then number = floor(((number + 1) * old_length - 1) / length) end
          if (number + 1) * length - 1 > time - interval then
            local at = set_back and 0 or s.newest - number
            s[at] = s[at] + count
            s.total = s.total + count
          end
        end
      end
      if set_back then s.newest = current end
      s.moved = set_back
      return s
    end,

    fits = function(p, s, cost) return s.total + cost <= p.quota end,
    take = function(p, s, cost)
      s[0] = s[0] + cost
      s.total = s.total + cost
    end,
    -- The oldest units go first: what is left then counts no shorter than it should.
    give = function(p, s, units, place, at)
      if at >= 0 and (floor(at / p[3]) + 1) * p[3] - 1 <= max(s.now, s.newest * p[3]) - p[1] then return end
      for age = p[2], 0, -1 do
        local given = min(units, s[age])
        s[age] = s[age] - given
        s.total = s.total - given
        units = units - given
      end
    end,
    remaining = function(p, s) return p.quota - s.total end,
    retry = function(p, s, cost)
      local excess, age = s.total + cost - p.quota, p[2] + 1
      while excess > 0 do
        age = age - 1
        excess = excess - s[age]
      end
      return until_slice_ends(p, s, age)
    end,
    reset = reset,
    lives = reset,
    packed = true,
    save = function(p, s, key)
      local old = { p[3], s.newest }
      for age = 0, p[2] do old[age + 3] = s[age] end
      put(key, cmsgpack.pack(old), reset(p, s))
    end,

    history = function(p, s)
      local slices = {}
      for age = p[2], 0, -1 do
        local start = (s.newest - age) * p[3]
        for _, value in ipairs({ start / 1000, (start + p[3]) / 1000, s[age] }) do slices[#slices + 1] = value end
      end
      return slices
    end,
  }
end
