-- Sliding log. Parameters: interval.
-- Stored: a list: the sum before the first request, then time and sum of each request, the oldest first. A sum is what was
-- charged up to and including that request, modulo 2^24 and minus 2^23: 5 bytes in a list, with 10 for the time.
--
-- Uses: time_to_live

local MODULUS, SHIFT = 2 ^ 24, 2 ^ 23

-- Units between two sums.
local function between(from, to) return (to - from) % MODULUS end

local function after(sum, units) return (sum + SHIFT + units) % MODULUS - SHIFT end

-- The first request from `low` on that passes the test, or one more than there are; requests that pass come last. Looks near
-- `low` first, since few requests expire between two calls.
local function search(state, low, test)
  local step = 1
  local high = low
  while high <= state.length and not test(high) do
    low, high, step = high + 1, high + step, step * 2
  end
  high = min(high, state.length + 1)
  while low < high do
    local middle = floor((low + high) / 2)
    if test(middle) then high = middle else low = middle + 1 end
  end
  return low
end

local function time_of(state, i) return tonumber(redis.call('LINDEX', state.key, 2 * i - 1)) end
local function sum_of(state, i) return tonumber(redis.call('LINDEX', state.key, 2 * i)) end

-- The first request that brings the sum `units` above the one before the first request.
local function reaching(state, units)
  return search(state, state.first, function(i) return between(state.base, sum_of(state, i)) >= units end)
end

local function last_time(state) return (state.added > 0 or state.collapsed) and state.time or state.last end

local function reset_after(limit, state) return state.used > 0 and last_time(state) + limit.interval - state.now or 0 end

return {
  parameters = { 'interval' },
  own_type = true,

  open = function(limit, _, now, key, state)
    local interval = limit.interval
    state.key, state.length, state.first, state.base, state.time = key, 0, 1, 0, now
    state.used, state.given, state.added = 0, 0, 0
    local newest = redis.call('LRANGE', key, -2, -1)
    if #newest == 0 then return end
    state.last, state.sum = tonumber(newest[1]), tonumber(newest[2])
    state.length = (redis.call('LLEN', key) - 1) / 2
    state.collapsed = state.last - now >= interval
    state.time = max(now, state.last)
    local oldest = state.time - interval
    state.first = search(state, 1, function(i) return time_of(state, i) > oldest end)
    state.base = sum_of(state, state.first - 1)
    state.used = between(state.base, state.sum)
    if state.collapsed then
      state.time = now
      state.migrated = state.used > 0
    end
  end,

  fits = function(limit, state, cost) return state.used + cost <= limit.quota end,
  take = function(limit, state, cost)
    state.used = state.used + cost
    state.added = state.added + cost
  end,
  -- The oldest units go first: the rest never counts for too short a time.
  give = function(limit, state, units, _, charged_at)
    if charged_at >= 0 and charged_at <= state.time - limit.interval then return end
    local given = min(units, state.used)
    state.used = state.used - given
    state.given = state.given + given
  end,
  remaining = function(limit, state) return limit.quota - state.used end,
  retry_after = function(limit, state, cost)
    local excess = state.given + state.used + cost - limit.quota
    local freed = state.collapsed and state.length + 1 or reaching(state, excess)
    return (freed <= state.length and time_of(state, freed) or state.time) + limit.interval - state.now
  end,
  reset_after = reset_after,
  keep_for = function(_, _, reset_after) return reset_after end,
  counts = function(limit, state, charged_at, time) return charged_at > max(time, state.time) - limit.interval end,
  -- Twice as many stay below the modulus.
  most = function(limit) return 2 * limit.quota end,

  save = function(limit, state, key)
    if state.used == 0 then return redis.call('UNLINK', key) end
    local base = after(state.base, state.given)
    local keep = state.collapsed and state.length + 1 or state.given > 0 and reaching(state, state.given + 1) or state.first
    if keep > state.length then
      if state.length > 0 then redis.call('UNLINK', key) end
      redis.call('RPUSH', key, base, state.time, after(base, state.used))
    else
      if keep > 1 then redis.call('LTRIM', key, 2 * (keep - 1), -1) end
      if state.given > 0 then redis.call('LSET', key, 0, base) end
      if state.added > 0 and state.time == state.last then
        redis.call('LSET', key, -1, after(base, state.used))
      elseif state.added > 0 then
        redis.call('RPUSH', key, state.time, after(base, state.used))
      end
    end
    redis.call('PEXPIRE', key, time_to_live(last_time(state) + limit.interval - state.now))
  end,
}
