-- Sliding log. Parameters: interval.
-- Stored: a list: the sum before the first request, then time and sum of each request, the oldest first. A sum is what was
-- charged up to and with that request, modulo 2^24 and less 2^23: 5 bytes in a list, with 10 for the time.

algorithms['sliding-log'] = function()
  local MODULUS, SHIFT = 2 ^ 24, 2 ^ 23

  -- Units between two sums.
  local function between(from, to) return (to - from) % MODULUS end

  local function after(sum, units) return (sum + SHIFT + units) % MODULUS - SHIFT end

  -- The first request from `low` on that passes the test, or one more than there are; those that do come last.
  -- Looks near `low` first, since few requests run out between two calls.
  local function search(s, low, test)
    local step = 1
    local high = low
    while high <= s.length and not test(high) do
      low, high, step = high + 1, high + step, step * 2
    end
    high = min(high, s.length + 1)
    while low < high do
      local middle = floor((low + high) / 2)
      if test(middle) then high = middle else low = middle + 1 end
    end
    return low
  end

  local function time_of(s, i) return tonumber(redis.call('LINDEX', s.key, 2 * i - 1)) end
  local function sum_of(s, i) return tonumber(redis.call('LINDEX', s.key, 2 * i)) end

  -- The first request that brings the sum `units` above that before the first one.
  local function reaching(s, units)
    return search(s, s.first, function(i) return between(s.base, sum_of(s, i)) >= units end)
  end

  local function last_time(s) return (s.added > 0 or s.collapsed) and s.time or s.last end

  local function reset(p, s) return s.used > 0 and last_time(s) + p[1] - s.now or 0 end

  return {
    apart = true,

    open = function(p, _, now, key)
      local interval = p[1]
      local s = { now = now, moved = false, key = key, length = 0, first = 1, base = 0, time = now, used = 0, given = 0, added = 0 }
      local newest = redis.call('LRANGE', key, -2, -1)
      if #newest == 0 then return s end
      s.last, s.sum = tonumber(newest[1]), tonumber(newest[2])
      s.length = (redis.call('LLEN', key) - 1) / 2
      s.collapsed = s.last - now >= interval
      s.time = max(now, s.last)
      local oldest = s.time - interval
      s.first = search(s, 1, function(i) return time_of(s, i) > oldest end)
      s.base = sum_of(s, s.first - 1)
      s.used = between(s.base, s.sum)
      if s.collapsed then
        s.time = now
        s.moved = s.used > 0
      end
      return s
    end,

    fits = function(p, s, cost) return s.used + cost <= p.quota end,
    take = function(p, s, cost)
      s.used = s.used + cost
      s.added = s.added + cost
    end,
    -- The oldest units go first: what is left then counts no shorter than it should.
    give = function(p, s, units, place, at)
      if at >= 0 and at <= s.time - p[1] then return end
      local given = min(units, s.used)
      s.used = s.used - given
      s.given = s.given + given
    end,
    remaining = function(p, s) return p.quota - s.used end,
    retry = function(p, s, cost)
      local excess = s.given + s.used + cost - p.quota
      local freed = s.collapsed and s.length + 1 or reaching(s, excess)
      return (freed <= s.length and time_of(s, freed) or s.time) + p[1] - s.now
    end,
    reset = reset,
    lives = reset,

    save = function(p, s, key)
      if s.used == 0 then return redis.call('UNLINK', key) end
      local base = after(s.base, s.given)
      local keep = s.collapsed and s.length + 1 or s.given > 0 and reaching(s, s.given + 1) or s.first
      if keep > s.length then
        if s.length > 0 then redis.call('UNLINK', key) end
        redis.call('RPUSH', key, base, s.time, after(base, s.used))
      else
        if keep > 1 then redis.call('LTRIM', key, 2 * (keep - 1), -1) end
        if s.given > 0 then redis.call('LSET', key, 0, base) end
        if s.added > 0 and s.time == s.last then
          redis.call('LSET', key, -1, after(base, s.used))
        elseif s.added > 0 then
          redis.call('RPUSH', key, s.time, after(base, s.used))
        end
      end
      redis.call('PEXPIRE', key, ceil((last_time(s) + p[1] - s.now) / 1000) + time_to_live_slack)
    end,
  }
end
