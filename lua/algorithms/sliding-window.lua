-- Sliding window of slices. Parameters: interval, slices, length of a slice.
-- Stored: a MessagePack array: length, absolute number of the newest slice, the counts of as many slices as the interval has and
-- of one more, from the newest on. What is not charged or given back stays in the slices that it was stored in; a refusal under a
-- longer interval stores it with as many of them as that takes.

local MOST_SLICES = 1000

local function until_slice_ends(limit, state, age) return (state.newest - age + 1) * limit.length - 1 + limit.interval - state.now end

local function reset_after(limit, state)
  if state.total == 0 then return 0 end
  local age = 0
  while state.counts[age + 3] == 0 do age = age + 1 end
  return until_slice_ends(limit, state, age)
end

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

-- Puts what was stored into slices of these parameters.
local function translate(limit, state, old, is_same, set_back)
  local slices, length, time = limit.slices, limit.length, max(state.now, old[2] * old[1])
  local oldest, latest = time - limit.interval, floor(time / length)
  if not set_back then state.ahead = state.newest - latest end
  local counts = empty(length, state.newest, slices + state.ahead)
  for age = 0, #old - 3 do
    local count = old[age + 3]
    if count > 0 then
      local number = old[2] - age
      -- A slice of another length counts at its last microsecond, which may be still to come.
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

return {
  parameters = { 'interval', 'slices', 'length' },
  packed = true,

  open = function(limit, stored, now, _, state)
    local interval, slices, length = limit.interval, limit.slices, limit.length
    local current = floor(now / length)
    state.newest, state.total, state.ahead = current, 0, 0
    if not stored then
      state.counts = empty(length, current, slices)
      return
    end
    local old = cmsgpack.unpack(stored)
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
    -- When in its slice the last unit came is not known: it may have been at the end.
    local set_back = (state.newest + 1) * length - 1 - now >= interval
    if is_same and newest == state.newest and not set_back then
      state.counts = old
      local age, oldest = slices, max(now, newest * length) - interval
      while (newest - age + 1) * length - 1 <= oldest do
        old[age + 3] = 0
        age = age - 1
      end
      for i = 3, age + 3 do state.total = state.total + old[i] end
      return
    end
    state.counts = translate(limit, state, old, is_same, set_back)
    if set_back then state.newest, state.counts[2] = current, current end
    if set_back or state.total == 0 then state.kept = nil end
    state.migrated = set_back or state.migrated and state.kept ~= nil
  end,

  fits = function(limit, state, cost) return state.total + cost <= limit.quota end,
  take = function(limit, state, cost)
    settle(state)
    state.counts[3] = state.counts[3] + cost
    state.total = state.total + cost
  end,
  -- The oldest units go first: what is left then counts no shorter than it should.
  give = function(limit, state, units, _, charged_at)
    if charged_at >= 0 and (floor(charged_at / limit.length) + 1) * limit.length - 1 <= max(state.now, state.newest * limit.length) - limit.interval then return end
    settle(state)
    for i = limit.slices + 3, 3, -1 do
      local given = min(units, state.counts[i])
      state.counts[i] = state.counts[i] - given
      state.total = state.total - given
      units = units - given
    end
  end,
  remaining = function(limit, state) return limit.quota - state.total end,
  retry_after = function(limit, state, cost)
    local excess, age = state.total + cost - limit.quota, limit.slices + state.ahead + 1
    while excess > 0 do
      age = age - 1
      excess = excess - state.counts[age + 3]
    end
    return until_slice_ends(limit, state, age)
  end,
  reset_after = reset_after,
  keep_for = function(_, _, reset_after) return reset_after end,
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
