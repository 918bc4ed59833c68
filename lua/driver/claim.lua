-- Units that somebody takes once, however often it asks for them. Beside the counter, in a key of its own, stands the claim, made of
-- doubles: when the units can be used, when they were charged, their ticket or -1, how many they are, and 1 once they were asked for
-- at a time when they could be used.
--
-- Uses: CLAIM, PEEK, add, decide, entry_costs, entry_limits, entry_waits, has_features, learns_or_claims, milliseconds, mode_of,
--   note_correction, now, reply, size, time_to_live, values
-- Leaves: claim_keys, claim_keeps, claims

-- The number of each entry's key of the claim, and for how many microseconds it is kept once its units can be used.
local claim_keys, claim_keeps = {}, {}

local claims

if learns_or_claims then
  -- Marks a claim in the reply, in place of a decision.
  local CLAIMED = -2

  local function read(number)
    local value = values[number]
    if value and #value == 40 then return unpack_doubles('<ddddd', value) end
  end

  local function write(number, keep, usable_at, ...)
    values[number] = pack('<ddddd', usable_at, ...)
    redis.call('SET', KEYS[number], values[number], 'PX', time_to_live(max(usable_at - now, 0) + keep))
  end

  -- Records what a reservation was given, from its reply.
  local function note(count, at)
    if reply[at] < 0 then return end
    local is_charged = reply[at] % 4 > 0 or entry_limits[1].shadow
    for i = 1, count do
      local outcome, delay, ticket = reply[at] % 4, 0, -1
      if outcome == 2 then delay, ticket = reply[at + 2] * 1000, reply[at + 3] end
      if outcome > 0 and is_charged then
        write(claim_keys[i], claim_keeps[i], now + delay, now, ticket, entry_costs[i], delay == 0 and 1 or 0)
      end
      local limit = entry_limits[i]
      at = at + (outcome == 0 and 3 or 2 * outcome) + (limit.steps and 1 or 0) + (limit.counts_refused and 1 or 0)
      if limit.algorithm.varies then at = at + 1 + limit.has_credits end
    end
  end

  claims = {
    -- Replies how long it is until the units can be used, if they have been claimed; else claims them, or looks at them.
    claim = function(count)
      local usable_at, charged_at, ticket, units, is_used = read(claim_keys[1])
      if not usable_at then
        local at = size + 1
        decide(mode_of(entry_waits[1] < 0 and PEEK or CLAIM), count, 1, 0)
        if entry_waits[1] >= 0 then note(count, at) end
        return
      end
      -- If the clock was set back, they can be used no later than if they had just been claimed.
      local delay = max(0, min(usable_at, now + usable_at - charged_at) - now)
      if delay == 0 and is_used == 0 then
        write(claim_keys[1], claim_keeps[1], usable_at, charged_at, ticket, units, 1)
      end
      add(CLAIMED)
      add(milliseconds(delay))
    end,

    -- Ends a claim. Its units come back if that is asked for, unless they could be used already.
    release = function(limit, state, number, gives_back)
      local usable_at, charged_at, ticket, units, is_used = read(number)
      local comes_back = usable_at and gives_back == 1 and is_used == 0
      if comes_back then
        limit.algorithm.give(limit, state, units, ticket, charged_at)
        if has_features then note_correction(limit, state, -units, charged_at) end
      end
      if values[number] then redis.call('DEL', KEYS[number]) end
      values[number] = false
      add(1)
      return comes_back
    end,
  }
end
