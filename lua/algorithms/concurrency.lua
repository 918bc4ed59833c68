-- Concurrency. Parameters: time to live; the identifier of the next lease, which no other call uses.
-- Stored: a sorted set with a member `id:units` for each lease, by when it ends, and two more by a negative score: '' by the
-- units of all leases that are in the set, and '~' by the longest time to live that one of them was given.
--
-- A check examines a limited number of leases, and removes as many that have ended. If more have ended, each of the others counts
-- as one unit less, which is what it holds unless it holds more, until later checks have removed it.
--
-- Uses: time_to_live

local MOST = 256
local MOST_TEXT = tostring(MOST)

local function member(units, id) return string.format('%.0f:%.0f', id, units) end

-- Redis takes long to format a number from Lua, and times are the same for all leases of a call.
local times = {}

local function text(time)
  local known = times[time]
  if not known then
    known = string.format('%.0f', time)
    times[time] = known
  end
  return known
end

-- A member that is not a lease holds nothing.
local function units_of(lease) return tonumber(string.match(lease, ':(%d+)$') or 0) end

local function sum(leases)
  local units = 0
  for i = 1, #leases do units = units + units_of(leases[i]) end
  return units
end

local function after(time) return '(' .. text(time) end

local function count(state, from, to) return redis.call('ZCOUNT', state.key, from, to) end

local function is_running(state, lease) return tonumber(redis.call('ZSCORE', state.key, lease) or 0) > state.now end

-- When the last lease ends.
local function last_end(state) return max(state.now, tonumber(redis.call('ZREVRANGE', state.key, 0, 0, 'WITHSCORES')[2])) end

local function hold(limit, state, lease)
  -- If there already is a time to live, the longer one stays.
  return min(1, redis.call('ZADD', state.key, 'LT', text(state.now + limit.ttl), lease, text(-limit.ttl), '~'))
end

-- Adjusts the stored leases to a clock that was set back, before others are added or removed.
local function settle(state)
  if not state.collapsed then return end
  local late, ends = redis.call('ZREVRANGE', state.key, 0, MOST - 1, 'WITHSCORES'), {}
  for i = 1, #late, 2 do
    if tonumber(late[i + 1]) > state.now then
      ends[#ends + 1] = text(state.now + state.longest)
      ends[#ends + 1] = late[i]
    end
  end
  redis.call('ZADD', state.key, unpack(ends))
  state.collapsed = false
end

return {
  parameters = { 'ttl', 'next' },
  own_type = true,

  open = function(limit, _, now, key, state)
    state.key, state.held, state.stored, state.ended, state.last = key, 0, 0, {}, 0
    local stored = redis.call('ZSCORE', key, '')
    if not stored then return end
    state.stored = -tonumber(stored)
    state.last = tonumber(redis.call('ZREVRANGE', key, '0', '0', 'WITHSCORES')[2])
    state.ended = redis.call('ZRANGEBYSCORE', key, '(0', text(now), 'LIMIT', '0', MOST_TEXT)
    state.held = state.stored
    if #state.ended > 0 then state.held = state.held - sum(state.ended) end
    if #state.ended == MOST then
      local all, ended = count(state, '(0', '+inf'), count(state, '(0', now)
      state.held = all == state.stored and all - ended or state.held - (ended - MOST)
      state.migrated = true
    end
    if state.last - now >= 2 * limit.ttl then
      state.longest = max(limit.ttl, -tonumber(redis.call('ZSCORE', key, '~') or 0))
      state.collapsed = state.last - now >= 2 * state.longest
      if state.collapsed then
        state.migrated = true
        state.last = now + state.longest
      end
    end
  end,

  fits = function(limit, state, cost) return state.held + cost <= limit.quota end,

  -- Nothing is delayed; the ticket is the identifier of the next lease.
  delay = function(limit) return 0, limit.next end,

  take = function(limit, state, cost)
    settle(state)
    -- If a client resends a call whose reply was lost, the resent call adds no lease.
    local added = hold(limit, state, member(cost, limit.next)) * cost
    limit.next = limit.next + 1
    state.held, state.stored = state.held + added, state.stored + added
    state.last = max(state.last, state.now + limit.ttl)
  end,

  give = function(_, state, units, ticket)
    local lease = member(units, ticket)
    if is_running(state, lease) then
      settle(state)
      redis.call('ZREM', state.key, lease)
      state.held, state.stored = state.held - units, state.stored - units
      state.last = last_end(state)
    end
  end,

  renew = function(limit, state, units, ticket)
    local lease = member(units, ticket)
    if not is_running(state, lease) then return false end
    settle(state)
    redis.call('ZREM', state.key, lease)
    hold(limit, state, lease)
    state.last = last_end(state)
    return true
  end,

  remaining = function(limit, state) return limit.quota - state.held end,

  -- Leases end one after another until enough is free. Usually few have to, so few are examined first.
  retry_after = function(limit, state, cost)
    if state.collapsed then return state.longest end
    local excess = state.held + cost - limit.quota
    local now, from, to, ends = after(state.now), 0, 32, nil
    repeat
      ends = redis.call('ZRANGEBYSCORE', state.key, now, '+inf', 'WITHSCORES', 'LIMIT', text(from), text(to - from))
      for i = 1, #ends, 2 do
        excess = excess - units_of(ends[i])
        if excess <= 0 then return ends[i + 1] - state.now end
      end
      from, to = to, MOST
    until #ends == 0 or from == MOST
    if #ends == 0 then return limit.ttl end
    local behind = max(0, count(state, now, '+inf') - from - excess)
    return redis.call('ZREVRANGE', state.key, behind, behind, 'WITHSCORES')[2] - state.now
  end,

  reset_after = function(limit, state) return state.held > 0 and state.last - state.now or 0 end,

  save = function(limit, state, key)
    if state.held <= 0 then return redis.call('UNLINK', key) end
    if #state.ended > 0 then
      redis.call('ZREM', key, unpack(state.ended))
      state.stored = state.stored - sum(state.ended)
      state.ended = {}
    end
    settle(state)
    redis.call('ZADD', key, text(-state.stored), '')
    redis.call('PEXPIRE', key, time_to_live(state.last - state.now))
  end,
}
