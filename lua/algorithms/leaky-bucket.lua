-- Leaky bucket that shapes. Parameters: arrival-time.lua, with a quota of queue + 1.
-- Stored: as arrival-time.lua; then two doubles for each range of free slots: the tick at which the last of them leaves, and
-- their number; then, if needed, three doubles: the units that a penalty added at the end of the queue beyond the quota, and the
-- tick up to which and the time at which units were cut off the end (0: none were). A slot is free if its request went away while
-- others were queued behind it; the earliest comes first. There are none while more is owed than the quota.
--
-- Uses: arrival_time

local arrival = arrival_time()

local FIXED, FREE, EXTRA = 40, 16, 24 -- bytes
local MAX_FREE = 100 -- stretches of free slots

-- The tick at which a unit leaves: index 0 is the last one of the queue, 1 the one before it.
local function tick_of(limit, state, index) return state.time + ceil((state.debt - (index + 1) * limit.unit) / limit.speed) end

-- The index of the unit that leaves at a tick.
local function index_of(limit, state, tick) return ceil((state.debt - (tick - state.time) * limit.speed) / limit.unit) - 1 end

-- The earliest free slots that are enough.
local function free_for(state, cost)
  for i, slots in ipairs(state.free) do
    if slots.units >= cost then return i end
  end
end

-- The units kept for others.
local function kept_of(limit) return limit.whole and limit.whole - limit.quota or 0 end

-- How long a request is held if no slot is free, and the tick at which it leaves.
local function delay(limit, state, cost)
  local leaves = state.time + ceil((state.debt + (cost - 1) * limit.unit) / limit.speed)
  return max(0, leaves * limit.tick - max(state.now, state.time * limit.tick)), leaves
end

-- How many of the free slots are in the future.
local function still_to_come(limit, state, time, units)
  return min(units, ceil((state.debt + limit.speed) / limit.unit) - 1 - index_of(limit, state, time))
end

-- Removes units from the end of the queue, with the free slots there.
local function shorten(limit, state, units)
  state.debt = max(0, state.debt - units * limit.unit)
  state.penalty = max(0, state.penalty - units)
  while #state.free > 0 do
    local last = state.free[#state.free]
    local index = index_of(limit, state, last.time)
    if index > 0 then return end
    state.debt = max(0, state.debt - max(0, last.units + index) * limit.unit)
    state.free[#state.free] = nil
  end
end

-- Frees slots, of which the last leaves at a tick. A penalty is settled first.
local function free(limit, state, units, time)
  local settled = min(units, state.penalty)
  state.debt = state.debt - settled * limit.unit
  state.penalty = state.penalty - settled
  if state.debt > (limit.whole or limit.quota) * limit.unit or settled == units then return end
  local added = { time = time, units = still_to_come(limit, state, time, units - settled) }
  if added.units <= 0 then return end
  local before, behind = {}, {}
  for _, each in ipairs(state.free) do
    local is_before = each.time <= added.time
    local first, second = each, added
    if not is_before then first, second = added, each end
    local from, to = index_of(limit, state, first.time), index_of(limit, state, second.time)
    if from > to + second.units then
      local list = is_before and before or behind
      list[#list + 1] = each
    else
      -- They are consecutive, or overlap.
      added = { time = second.time, units = max(from + first.units, to + second.units) - to }
    end
  end
  before[#before + 1] = added
  for _, each in ipairs(behind) do before[#before + 1] = each end
  while #before > MAX_FREE do before[#before] = nil end
  state.free = before
end

return {
  parameters = { 'unit', 'speed', 'tick', 'interval' },

  open = function(limit, stored, now, key, state)
    arrival.open(limit, stored and string.sub(stored, 1, FIXED), now, key, state)
    state.free, state.penalty, state.cut_end, state.cut_at = {}, 0, 0, 0
    if not stored or state.migrated then return end
    local length = #stored
    if (length - FIXED) % FREE ~= 0 then
      length = length - EXTRA
      state.penalty, state.cut_end, state.cut_at = unpack_doubles('<ddd', stored, length + 1)
    end
    if state.debt > limit.quota * limit.unit then return end
    state.penalty = 0
    for at = FIXED + 1, length, FREE do
      local time, units = unpack_doubles('<dd', stored, at)
      units = still_to_come(limit, state, time, units)
      if units > 0 then state.free[#state.free + 1] = { time = time, units = units } end
    end
  end,

  fits = function(limit, state, cost)
    return arrival.fits(limit, state, cost) or free_for(state, cost + kept_of(limit)) ~= nil
  end,

  take = function(limit, state, cost)
    local i = free_for(state, cost)
    if i then
      -- Takes the earliest of them.
      state.free[i].units = state.free[i].units - cost
      if state.free[i].units == 0 then table.remove(state.free, i) end
    elseif arrival.fits(limit, state, cost) then
      state.debt = state.debt + cost * limit.unit
    else
      -- A penalty that does not fit takes free slots first.
      for _, slots in ipairs(state.free) do cost = cost - slots.units end
      cost = max(0, cost)
      state.free = {}
      state.debt = state.debt + cost * limit.unit
      state.penalty = state.penalty + cost
    end
  end,

  give = function(limit, state, units, ticket, charged_at)
    local queue_end = tick_of(limit, state, 0)
    if ticket < 0 then
      shorten(limit, state, units)
      queue_end = tick_of(limit, state, 0)
      state.cut_end = state.cut_at > 0 and min(queue_end, state.cut_end) or queue_end
      state.cut_at = state.now
      return
    end
    -- It was taken before the clock was set back, or before units were cut off the end, and no longer belongs to the request.
    if floor(charged_at / limit.tick) > state.time then return end
    if state.cut_at > 0 and ticket > state.cut_end and charged_at <= state.cut_at then return end
    if ticket == queue_end then
      shorten(limit, state, units)
    elseif ticket >= state.time and ticket < queue_end and ticket - tick_of(limit, state, index_of(limit, state, ticket)) <= 1 then
      -- No unit leaves between two slots: the queue of such a ticket has already drained.
      free(limit, state, units, ticket)
    end
  end,

  remaining = function(limit, state)
    local most = arrival.remaining(limit, state)
    for _, slots in ipairs(state.free) do most = max(most, min(slots.units - kept_of(limit), limit.quota)) end
    return most
  end,

  delay = function(limit, state, cost)
    local i = free_for(state, cost)
    if not i then return delay(limit, state, cost) end
    local leaves = tick_of(limit, state, index_of(limit, state, state.free[i].time) + state.free[i].units - cost)
    return max(0, leaves * limit.tick - max(state.now, state.time * limit.tick)), leaves
  end,

  scale_used = arrival.scale_used,
  retry_after = arrival.retry_after,
  reset_after = arrival.reset_after,

  encode = function(limit, state)
    local parts = { arrival.encode(limit, state) }
    for i, slots in ipairs(state.free) do parts[i + 1] = pack('<dd', slots.time, slots.units) end
    if state.penalty > 0 or state.cut_at > 0 then
      parts[#parts + 1] = pack('<ddd', state.penalty, state.cut_end, state.cut_at)
    end
    return table.concat(parts)
  end,
}
