-- Concurrency. Parameters: time to live, an identifier that no other call uses.
-- Stored: a sorted set with a member `id:units` for each lease, by when it ends, and two more by a negative score: '' by the
-- units of all leases that are in the set, and '~' by the longest time to live that one of them was given.
--
-- A check looks at so many leases at most, and takes away so many that have ended. If more have ended, each of the others
-- counts as one unit less, which is what it holds unless it holds more, until later checks have taken it away.

algorithms['concurrency'] = function()
  local MOST = 256
  local MOST_TEXT = tostring(MOST)

  local function member(units, id) return string.format('%.0f:%.0f', id, units) end

  -- Redis takes long to write a number that Lua gives it, and times are the same for all leases of a call.
  local times = {}

  local function text(time)
    local known = times[time]
    if not known then
      known = string.format('%.0f', time)
      times[time] = known
    end
    return known
  end

  -- What is no lease holds nothing.
  local function units_of(lease) return tonumber(string.match(lease, ':(%d+)$') or 0) end

  local function sum(leases)
    local units = 0
    for i = 1, #leases do units = units + units_of(leases[i]) end
    return units
  end

  local function after(time) return '(' .. text(time) end

  local function count(s, from, to) return redis.call('ZCOUNT', s.key, from, to) end

  local function is_running(s, lease) return tonumber(redis.call('ZSCORE', s.key, lease) or 0) > s.now end

  -- When the last lease ends.
  local function last_end(s) return max(s.now, tonumber(redis.call('ZREVRANGE', s.key, 0, 0, 'WITHSCORES')[2])) end

  local function hold(p, s, lease)
    -- Of a time to live that is there already, the longer one stays.
    return min(1, redis.call('ZADD', s.key, 'LT', text(s.now + p[1]), lease, text(-p[1]), '~'))
  end

  -- Writes down what a clock that was set back means for the leases that are there, before others are added or taken away.
  local function settle(s)
    if not s.collapsed then return end
    local late, ends = redis.call('ZREVRANGE', s.key, 0, MOST - 1, 'WITHSCORES'), {}
    for i = 1, #late, 2 do
      if tonumber(late[i + 1]) > s.now then
        ends[#ends + 1] = text(s.now + s.longest)
        ends[#ends + 1] = late[i]
      end
    end
    redis.call('ZADD', s.key, unpack(ends))
    s.collapsed = false
  end

  return {
    apart = true,

    open = function(p, _, now, key)
      local s = { now = now, moved = false, key = key, held = 0, stored = 0, ended = {}, last = 0 }
      local stored = redis.call('ZSCORE', key, '')
      if not stored then return s end
      s.stored = -tonumber(stored)
      s.last = tonumber(redis.call('ZREVRANGE', key, '0', '0', 'WITHSCORES')[2])
      s.ended = redis.call('ZRANGEBYSCORE', key, '(0', text(now), 'LIMIT', '0', MOST_TEXT)
      s.held = s.stored
      if #s.ended > 0 then s.held = s.held - sum(s.ended) end
      if #s.ended == MOST then
        local all, ended = count(s, '(0', '+inf'), count(s, '(0', now)
        s.held = all == s.stored and all - ended or s.held - (ended - MOST)
        s.moved = true
      end
      if s.last - now >= 2 * p[1] then
        s.longest = max(p[1], -tonumber(redis.call('ZSCORE', key, '~') or 0))
        s.collapsed = s.last - now >= 2 * s.longest
        if s.collapsed then
          s.moved = true
          s.last = now + s.longest
        end
      end
      return s
    end,

    fits = function(p, s, cost) return s.held + cost <= p.quota end,

    -- Nothing is delayed; the place is the identifier of the next lease.
    delay = function(p, s, cost) return 0, p[2] + (p.granted or 0) end,

    take = function(p, s, cost)
      settle(s)
      -- A client that sends a call twice, since it lost the answer to the first, adds no lease with the second.
      local added = hold(p, s, member(cost, p[2] + (p.granted or 0))) * cost
      p.granted = (p.granted or 0) + 1
      s.held, s.stored = s.held + added, s.stored + added
      s.last = max(s.last, s.now + p[1])
    end,

    give = function(p, s, units, place)
      local lease = member(units, place)
      if is_running(s, lease) then
        settle(s)
        redis.call('ZREM', s.key, lease)
        s.held, s.stored = s.held - units, s.stored - units
        s.last = last_end(s)
      end
    end,

    renew = function(p, s, units, place)
      local lease = member(units, place)
      if not is_running(s, lease) then return false end
      settle(s)
      redis.call('ZREM', s.key, lease)
      hold(p, s, lease)
      s.last = last_end(s)
      return true
    end,

    remaining = function(p, s) return p.quota - s.held end,

    -- Leases end one after the other until enough is free. Few have to, as a rule, so few are looked at first.
    retry = function(p, s, cost)
      if s.collapsed then return s.longest end
      local excess = s.held + cost - p.quota
      local now, from, to, ends = after(s.now), 0, 32, nil
      repeat
        ends = redis.call('ZRANGEBYSCORE', s.key, now, '+inf', 'WITHSCORES', 'LIMIT', text(from), text(to - from))
        for i = 1, #ends, 2 do
          excess = excess - units_of(ends[i])
          if excess <= 0 then return ends[i + 1] - s.now end
        end
        from, to = to, MOST
      until #ends == 0 or from == MOST
      if #ends == 0 then return p[1] end
      local behind = max(0, count(s, now, '+inf') - from - excess)
      return redis.call('ZREVRANGE', s.key, behind, behind, 'WITHSCORES')[2] - s.now
    end,

    reset = function(p, s) return s.held > 0 and s.last - s.now or 0 end,

    save = function(p, s, key)
      if s.held <= 0 then return redis.call('UNLINK', key) end
      if #s.ended > 0 then
        redis.call('ZREM', key, unpack(s.ended))
        s.stored = s.stored - sum(s.ended)
        s.ended = {}
      end
      settle(s)
      redis.call('ZADD', key, text(-s.stored), '')
      redis.call('PEXPIRE', key, time_to_live(s.last - s.now))
    end,
  }
end
