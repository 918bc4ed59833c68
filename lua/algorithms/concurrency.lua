-- Concurrency. Parameters: time to live, an identifier that no other call uses.
-- Stored: a sorted set with a member `id:units` for each lease, by when it ends, and the member '' with the units that are
-- held, as a negative score.

algorithms['concurrency'] = function()
  local function member(units, id) return string.format('%.0f:%.0f', id, units) end

  -- What is no lease holds nothing.
  local function units_of(lease) return tonumber(string.match(lease, ':(%d+)$') or 0) end

  -- When a lease ends, if it has not.
  local function end_of(s, lease)
    local score = tonumber(redis.call('ZSCORE', s.key, lease) or 0)
    return score > s.now and score or nil
  end

  -- When the last lease ends.
  local function last_end(s) return max(s.now, tonumber(redis.call('ZREVRANGE', s.key, 0, 0, 'WITHSCORES')[2])) end

  return {
    apart = true,

    open = function(p, _, now, key)
      local s = { now = now, moved = false, key = key, held = 0, expired = {}, last = 0 }
      local held = redis.call('ZSCORE', key, '')
      if not held then return s end
      s.held = -tonumber(held)
      s.last = tonumber(redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2])
      s.collapsed = s.last - now >= 2 * p[1]
      if s.collapsed then
        s.moved = true
        s.last = now + p[1]
        return s
      end
      s.expired = redis.call('ZRANGEBYSCORE', key, '(0', now)
      for _, lease in ipairs(s.expired) do s.held = s.held - units_of(lease) end
      return s
    end,

    fits = function(p, s, cost) return s.held + cost <= p.quota end,

    -- Nothing is delayed; the place is the identifier of the next lease.
    delay = function(p, s, cost) return 0, p[2] + (p.granted or 0) end,

    take = function(p, s, cost)
      -- A client that sends a call twice, since it lost the answer to the first, adds no lease with the second.
      local added = redis.call('ZADD', s.key, s.now + p[1], member(cost, p[2] + (p.granted or 0)))
      p.granted = (p.granted or 0) + 1
      s.held = s.held + cost * added
      s.last = max(s.last, s.now + p[1])
    end,

    give = function(p, s, units, place)
      local lease = member(units, place)
      if s.collapsed and redis.call('ZSCORE', s.key, lease) or end_of(s, lease) then
        redis.call('ZREM', s.key, lease)
        s.held = s.held - units
        if not s.collapsed then s.last = last_end(s) end
      end
    end,

    renew = function(p, s, units, place)
      local lease = member(units, place)
      if not (s.collapsed and redis.call('ZSCORE', s.key, lease) or end_of(s, lease)) then return false end
      redis.call('ZADD', s.key, s.now + p[1], lease)
      if not s.collapsed then s.last = last_end(s) end
      return true
    end,

    remaining = function(p, s) return p.quota - s.held end,

    -- Leases end one after the other until enough is free. Few have to, as a rule, so few are looked at first.
    retry = function(p, s, cost)
      if s.collapsed then return p[1] end
      local excess, from, count = s.held + cost - p.quota, 0, 32
      local now = '(' .. string.format('%.0f', s.now)
      repeat
        local ends = redis.call('ZRANGEBYSCORE', s.key, now, '+inf', 'WITHSCORES', 'LIMIT', from, count)
        for i = 1, #ends, 2 do
          excess = excess - units_of(ends[i])
          if excess <= 0 then return ends[i + 1] - s.now end
        end
        from, count = from + count, count * 4
      until #ends == 0
      return p[1]
    end,

    reset = function(p, s) return s.held > 0 and s.last - s.now or 0 end,

    save = function(p, s, key)
      if s.held <= 0 then return redis.call('DEL', key) end
      for _, lease in ipairs(s.expired) do redis.call('ZREM', key, lease) end
      if s.collapsed then
        for _, lease in ipairs(redis.call('ZRANGEBYSCORE', key, '(0', '+inf')) do redis.call('ZADD', key, s.last, lease) end
      end
      redis.call('ZADD', key, -s.held, '')
      redis.call('PEXPIRE', key, ceil((s.last - s.now) / 1000) + time_to_live_slack)
    end,
  }
end
