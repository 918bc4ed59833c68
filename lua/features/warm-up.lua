-- A variant of gcra and token-bucket for limits that warm up: an arrival time whose units weigh more while the limit is cold. What is
-- owed decides as ever. Parameters: those of the algorithm; then rest, use, warm, cold, extra. Coldness goes from 0 to `cold`, grows by `rest` a tick in
-- which nothing is owed, and a unit takes `use` of it. All units that bring it from `cold` to `warm` weigh `extra` more than those of
-- a warm limit, the coldest the most, in a line.
-- Stored: what the algorithm stores, then four doubles: coldness, `cold`, `rest`, and since when something is owed, in
-- microseconds. The coldness has not grown since. It is below 0 for units that found none, so that they find none either when they
-- are given back.
--
-- Uses: in_proportion

local feature = { parameters = { 'rest', 'use', 'warm', 'cold', 'extra' } }

function feature.variant(arrival)
  local open_arrival, encode_arrival, size = arrival.open, arrival.encode, arrival.encoded_size

  -- How much more the units that use up this coldness weigh than units of a warm limit.
  local function extra_weight(limit, coldness)
    if coldness <= limit.warm then return 0 end
    local part = (coldness - limit.warm) / (limit.cold - limit.warm)
    return floor(part * part * limit.extra + 0.5)
  end

  local function extra_of(limit, coldness, units)
    return extra_weight(limit, coldness) - extra_weight(limit, coldness - units * limit.use)
  end

  function arrival.open(limit, stored, now, key, state)
    if not stored then
      open_arrival(limit, nil, now, key, state)
      state.coldness, state.busy_since = limit.cold, now
      return
    end
    open_arrival(limit, string.sub(stored, 1, size), now, key, state)
    local coldness, cold, rest, busy_since = unpack_doubles('<dddd', stored, size + 1)
    if state.debt == 0 then
      local time, debt, _, speed, step = unpack_doubles('<ddddd', stored)
      local tick = step < 0 and 1000 or 1
      local cleared = (time + ceil(debt / speed)) * tick
      local idle = floor(max(0, now - cleared) / tick)
      coldness, busy_since = min(cold, max(0, coldness) + idle * rest), now
    end
    if cold ~= limit.cold or rest ~= limit.rest then
      local size = in_proportion(math.abs(coldness), limit.cold, cold)
      coldness = coldness < 0 and max(-MAX_OWED, -size) or size
      state.migrated = true
    end
    state.coldness, state.busy_since = coldness, busy_since
  end

  function arrival.take(limit, state, cost)
    state.debt = state.debt + cost * limit.unit + extra_of(limit, state.coldness, cost)
    state.coldness = max(-MAX_OWED, state.coldness - cost * limit.use)
  end

  function arrival.can_owe(limit, state, cost)
    return state.debt + cost * limit.unit + extra_of(limit, state.coldness, cost) <= MAX_OWED
  end

  -- If the units were charged since something is owed, the limit is as cold as if they had not been taken, and they weigh as much as
  -- if they were taken last; else what they weigh in a warm limit.
  function arrival.give(limit, state, units, ticket, charged_at)
    local colder = state.coldness
    if charged_at >= state.busy_since then colder = min(limit.cold, colder + units * limit.use) end
    local weight = units * limit.unit + extra_weight(limit, colder) - extra_weight(limit, state.coldness)
    local usable = max(ticket, floor(charged_at / limit.tick))
    local gone = usable < 0 and 0 or max(0, arrival.debt_cleared_at(limit, state) - usable)
    weight = weight - gone * limit.speed
    -- A ticket is from when the full weight of the units had drained, and those behind them may act earlier.
    if gone > 0 and ticket >= 0 then weight = weight - extra_of(limit, limit.cold, units) end
    if weight <= 0 then return end
    state.debt, state.coldness = max(0, state.debt - weight), colder
  end

  -- Until nothing is owed and the limit is fully cold.
  function arrival.keep_for(limit, state, reset_after)
    local idle = ceil((limit.cold - max(0, state.coldness)) / limit.rest)
    return reset_after + (idle > 0 and (idle + 1) * limit.tick or 0)
  end

  function arrival.encode(limit, state)
    return encode_arrival(limit, state) .. pack('<dddd', state.coldness, limit.cold, limit.rest, state.busy_since)
  end

  arrival.encoded_size = size + 32
  return arrival
end

return feature
