-- Cool-down. Parameters: rest.
-- Stored: three doubles: when the first unit was charged, when all are there again, and how many were charged.

return {
  parameters = { 'rest' },
  encoded_size = 24,
  reuses_state = true,

  open = function(limit, stored, now, _, state)
    local rest = limit.rest
    if stored then
      local start, rest_end, count = unpack_doubles('<ddd', stored)
      if count > 0 and now < rest_end then
        -- The rest is shorter now, or the clock was set back.
        if rest_end - now > rest then
          state.migrated = true
          start, rest_end = min(start, now), now + rest
        end
        state.start, state.rest_end, state.count = start, rest_end, count
        return
      end
    end
    state.start, state.rest_end, state.count = now, now + rest, 0
  end,

  fits = function(limit, state, cost) return state.count + cost <= limit.quota end,

  take = function(limit, state, cost)
    state.count = state.count + cost
    state.rest_end = state.now + limit.rest
  end,

  give = function(_, state, units, _, charged_at)
    if charged_at < 0 or charged_at >= state.start then state.count = max(0, state.count - units) end
  end,

  remaining = function(limit, state) return limit.quota - state.count end,
  retry_after = function(_, state) return state.rest_end - state.now end,
  reset_after = function(_, state) return state.count > 0 and state.rest_end - state.now or 0 end,
  encode = function(_, state) return pack('<ddd', state.start, state.rest_end, state.count) end,

  history = function(_, state)
    if state.count == 0 then return {} end
    return { floor(state.start / 1000), floor(state.rest_end / 1000), state.count }
  end,
}
