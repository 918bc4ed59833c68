-- Sliding window of slices. Parameters: interval, slices, length of a slice.
-- Stored: a MessagePack array: length, absolute number of the newest slice, the counts of as many slices as the interval has and
-- of one more, the newest first. Units that are not charged or given back stay in the slices in which they were stored; a refusal
-- under a longer interval stores as many of them as that needs. A number may follow: by how much those slices are longer
-- than the interval that the key's time to live is for. Versions that do not know it read what is before it.

local MOST_SLICES = 1000

local function empty(length, newest, slices)
  local counts = { length, newest }
  for i = 3, slices + 3 do counts[i] = 0 end
  return counts
end

-- What was stored, with the slices that it takes until its units count no longer, if it has fewer: of the same length, or of
-- a multiple where there were too many. What had left by the slices that it has does not come back.
local function lengthened(limit, old, now)
  local length, newest, slices = old[1], old[2], #old - 3
  local span, reach = length * slices, limit.interval + limit.length
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

-- Converts the stored counts to slices of these parameters.
local function translate(limit, state, old, is_same, set_back)
  local slices, length, time = limit.slices, limit.length, max(state.now, old[2] * old[1])
  local oldest, latest = time - limit.interval, floor(time / length)
  if not set_back then state.ahead = state.newest - latest end
  local counts = empty(length, state.newest, slices + state.ahead)
  for age = 0, #old - 3 do
    local count = old[age + 3]
    if count > 0 then
      local number = old[2] - age
      -- A slice of another length counts at its last microsecond, which may be in the future.
      if not is_same then number = min(floor(((number + 1) * old[1] - 1) / length), latest + MOST_SLICES) end
      if (number + 1) * length - 1 > oldest then
        local at = set_back and 3 or state.newest - number + 3
        counts[at] = counts[at] + count
        state.total = state.total + count
      end
    end
  end
  return counts
end

-- Before anything is charged or given back: nothing is stored for slices that are still to come, or the time would be theirs.
local function settle(state)
  state.kept = nil
  if state.ahead == 0 then return end
  local counts = { state.counts[1], state.newest - state.ahead, 0 }
  for i = 3, #state.counts do
    local at = max(3, i - state.ahead)
    counts[at] = (counts[at] or 0) + state.counts[i]
  end
  state.counts, state.newest, state.ahead = counts, counts[2], 0
end

-- Fails if the value cannot be read.
local function unpacked(value)
  local counts, longer = cmsgpack.unpack(value)
  local total = counts[2] * 0
  for i = 3, #counts do total = total + counts[i] end
  return counts, total, longer
end

local function begin(limit, state, now)
  state.newest, state.total, state.ahead, state.is_stored = floor(now / limit.length), 0, 0, false
  state.counts = { limit.length, state.newest, 0 }
  for i = 4, limit.slices + 3 do state.counts[i] = 0 end
  return true
end

local function resume(limit, state, now, value)
  local is_plain, counts, total, longer = pcall(unpacked, value)
  if is_plain then
    is_plain = counts[1] == limit.length and #counts == limit.slices + 3
  end
  if is_plain then
    local newest, slices, length = counts[2], limit.slices, limit.length
    local by = floor(now / length) - newest
    state.is_stored = by <= 0 and counts[3] > 0 and longer == length * slices - limit.interval
    if by > 0 then
      newest, total = newest + by, 0
      for i = slices + 3, 3, -1 do
        counts[i] = i - by >= 3 and counts[i - by] or 0
        total = total + counts[i]
      end
      counts[2] = newest
    end
    local age, oldest = slices, max(now, newest * length) - limit.interval
    while age > 0 and (newest - age + 1) * length - 1 <= oldest do
      if counts[age + 3] ~= 0 then
        total = total - counts[age + 3]
        counts[age + 3] = 0
        state.is_stored = false
      end
      age = age - 1
    end
    state.counts, state.newest, state.total, state.ahead = counts, newest, total, 0
    -- When the last unit of its slice came is unknown: possibly at the end.
    is_plain = (newest + 1) * length - 1 - now < limit.interval
  end
  return is_plain
end

local function fits(limit, state, cost) return state.total + cost <= limit.quota end

local function take(_, state, cost)
  state.counts[3] = state.counts[3] + cost
  state.total = state.total + cost
end

local function remaining(limit, state) return limit.quota - state.total end

local function retry_after(limit, state, cost)
  local excess, age = state.total + cost - limit.quota, limit.slices + state.ahead + 1
  while excess > 0 do
    age = age - 1
    excess = excess - state.counts[age + 3]
  end
  return (state.newest - age + 1) * limit.length - 1 + limit.interval - state.now
end

local function reset_after(limit, state)
  local micros, age = 0, 0
  if state.total > 0 then
    while state.counts[age + 3] == 0 do age = age + 1 end
    micros = (state.newest - age + 1) * limit.length - 1 + limit.interval - state.now
  end
  return micros
end

-- It lives until the units of its newest slice no longer count.
local function outlives(_, state) return state.is_stored end

local function extended(_, _, micros) return micros end

local function keep_for(_, _, micros) return micros end

-- Whether the slice of one time is still in the window at another time.
local function counts(limit, state, charged_at, at)
  return (floor(charged_at / limit.length) + 1) * limit.length - 1 > max(at, state.newest * limit.length) - limit.interval
end

local function encode(limit, state) return cmsgpack.pack(state.counts, limit.length * limit.slices - limit.interval) end

-- It has grown, or has the same length.
local function changed(limit, state)
  return '0', cmsgpack.pack(state.counts, limit.length * limit.slices - limit.interval)
end

return {
  parameters = { 'interval', 'slices', 'length' },
  packed = true,

  open = function(limit, stored, now, _, state)
    local interval, slices, length = limit.interval, limit.slices, limit.length
    if not stored then
      begin(limit, state, now)
      return
    end
    if resume(limit, state, now, stored) then return end
    local current, old = floor(now / length), cmsgpack.unpack(stored)
    state.newest, state.total, state.ahead = current, 0, 0
    local is_same = old[1] == length and #old - 3 == slices
    if not is_same then
      state.kept = lengthened(limit, old, now)
      state.migrated = state.kept ~= nil
      old = state.kept or old
      state.kept = old
    end
    local newest = old[2]
    if not is_same then
      -- No unit came later than now, or than the start of the newest slice while the clock catches up.
      local latest = floor(max(now, newest * old[1]) / length)
      newest = min(floor(((newest + 1) * old[1] - 1) / length), latest + MOST_SLICES)
    end
    state.newest = max(current, newest)
    local set_back = (state.newest + 1) * length - 1 - now >= interval
    state.counts = translate(limit, state, old, is_same, set_back)
    if set_back then state.newest, state.counts[2] = current, current end
    if set_back or state.total == 0 then state.kept = nil end
    state.migrated = set_back or state.migrated and state.kept ~= nil
  end,

  fits = fits,
  take = function(limit, state, cost)
    settle(state)
    take(limit, state, cost)
  end,
  -- The oldest units go first: the rest never counts for too short a time.
  give = function(limit, state, units, _, charged_at)
    if charged_at >= 0 and not counts(limit, state, charged_at, state.now) then return end
    settle(state)
    for i = limit.slices + 3, 3, -1 do
      local given = min(units, state.counts[i])
      state.counts[i] = state.counts[i] - given
      state.total = state.total - given
      units = units - given
    end
  end,
  remaining = remaining,
  retry_after = retry_after,
  reset_after = reset_after,
  keep_for = keep_for,
  counts = counts,
  encode = function(_, state) return cmsgpack.pack(state.kept or state.counts) end,

  history = function(limit, state)
    state = setmetatable({}, { __index = state })
    settle(state)
    local slices = {}
    for age = limit.slices, 0, -1 do
      local start = (state.newest - age) * limit.length
      for _, value in ipairs({ start / 1000, (start + limit.length) / 1000, state.counts[age + 3] }) do slices[#slices + 1] = value end
    end
    return slices
  end,
}
