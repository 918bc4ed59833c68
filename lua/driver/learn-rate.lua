-- The rate of a limit that has none of its own, found as TCP finds the rate of a path (RFC 5681: slow start, congestion
-- avoidance). It doubles in every second that is used; from half of the last refused rate on it grows by a sixteenth of that per
-- second; and each refusal halves it, once for all calls that were in flight. A refusal without a wait pauses all calls, twice as
-- long each time (RFC 6298); a refusal after such a pause only shows that the pause was too short. Once the upstream reports its
-- quota and window, these are the rate, unless it refuses before they are used up.
--
-- A key of its own holds nine doubles: the rate, in units a minute; the rate from which it grows slowly, 0 for none; when a call
-- was last refused; the last pause; the upstream's quota and window, 0 while unknown; 1 if the whole quota comes back at once;
-- the largest cost of a call; and when all of this was written.
--
-- Uses: add, learns_or_claims, now, set_block, time_to_live, values
-- Leaves: learn_rate

local learn_rate

if learns_or_claims then
  local MINUTE, SECOND, RATE_KEPT_FOR = 60000000, 1000000, 3600000000
  -- The most units a minute; and the share of a minute's units that may be sent at once: those of a quarter of a second.
  local MOST_RATE, BURSTS = 60000000000, 240

  -- A quota that the largest call would not fit does not apply to these calls.
  local function fastest(rate)
    if rate.quota < rate.largest then return MOST_RATE end
    return min(MOST_RATE, rate.quota * MINUTE / rate.window)
  end

  local function least(rate, slowest)
    return min(MOST_RATE, rate.largest * MINUTE / slowest)
  end

  -- Takes over the upstream's limit. If its window is not reported, it is as long as the longest time until its reset.
  local function adopt(rate, quota, window, reset, at_once)
    local is_new = quota ~= rate.quota
    if window <= 0 and at_once == 1 and reset > 0 then window = is_new and reset or max(rate.window, reset) end
    if quota < rate.largest or window <= 0 then return end
    rate.quota, rate.window, rate.at_once = quota, window, at_once
    if is_new then
      rate.units = fastest(rate)
      rate.threshold = rate.units
    end
  end

  local function slow_down(rate, state, block, slowest)
    rate.refused_at = now
    if rate.pause == 0 then
      rate.units = max(least(rate, slowest), rate.units / 2)
      rate.threshold = rate.units
    end
    if block >= 0 then return end
    rate.pause = min(max(rate.pause * 2, SECOND), slowest)
    if rate.pause <= 0 or now + rate.pause <= (state.blocked_until or 0) then return end
    set_block(state, rate.pause, state.envelope and state.envelope.offences)
    return true
  end

  local function grow(rate, units)
    local more = 60 * units
    if rate.threshold > 0 and rate.units >= rate.threshold then more = more * rate.threshold / (16 * rate.units) end
    rate.units = min(rate.units + more, fastest(rate))
    rate.pause = 0
  end

  -- Debt beyond what may be sent at once would drain at a rate much slower than the one under which it was used.
  local function forgive(limit, state, burst)
    local algorithm = limit.algorithm
    if algorithm.delay or algorithm.renew then return end
    local excess = limit.quota - algorithm.remaining(limit, state) - burst
    if excess <= 0 then return end
    algorithm.give(limit, state, excess, -1, -1)
    return true
  end

  -- Replies the units of an interval, its milliseconds, and the units that may be sent at once. Returns whether the counter was
  -- changed. `accepted` units sent `age` microseconds ago were answered, or `refused` is 1; -1 stands for unknown.
  function learn_rate(limit, state, number, remaining, reset, age, at_once, block, quota, window, accepted, refused, largest, slowest)
    local value = values[number]
    local rate = { units = min(60 * largest, MOST_RATE), threshold = 0, refused_at = 0, pause = 0, quota = 0, window = 0, at_once = 0 }
    local before = 0
    if value and #value == 72 then
      local stored = { unpack_doubles('<ddddddddd', value) }
      if now - stored[9] < RATE_KEPT_FOR and stored[1] <= MOST_RATE then
        rate.units, rate.threshold, rate.refused_at, rate.pause = stored[1], stored[2], stored[3], stored[4]
        rate.quota, rate.window, rate.at_once, before = stored[5], stored[6], stored[7], stored[8]
      end
    end
    rate.largest, rate.refused_at = max(before, largest), min(rate.refused_at, now)
    adopt(rate, quota, window, reset, at_once)
    local changed = false
    -- Calls sent before that show nothing about the rate since.
    if now - age >= rate.refused_at then
      if refused == 1 then
        if rate.quota == 0 or remaining ~= 0 then changed = slow_down(rate, state, block, slowest) end
      elseif accepted > 0 and limit.algorithm.remaining(limit, state) * 2 <= limit.quota then
        grow(rate, accepted)
      end
    end
    values[number] = pack(
      '<ddddddddd', rate.units, rate.threshold, rate.refused_at, rate.pause, rate.quota, rate.window, rate.at_once, rate.largest, now
    )
    redis.call('SET', KEYS[number], values[number], 'PX', time_to_live(RATE_KEPT_FOR))
    local units, interval, burst = rate.quota, ceil(rate.window / 1000), rate.quota
    if rate.at_once ~= 1 or rate.quota < rate.largest or rate.units < fastest(rate) then
      units, interval = max(1, floor(max(rate.units, least(rate, slowest)))), MINUTE / 1000
      burst = max(ceil(units / BURSTS), rate.largest)
    end
    add(units)
    add(interval)
    add(burst)
    return forgive(limit, state, burst) or changed
  end
end
