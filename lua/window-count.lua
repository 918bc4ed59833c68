-- The core of fixed-window and calendar-window: units counted between two times.
-- Stored: four doubles: start and end of the window, count, when it was last charged.
--
-- Leaves: window_count

local function window_count()
  local function fits(limit, state, cost) return state.count + cost <= limit.quota end

  local function take(_, state, cost)
    state.count = state.count + cost
    if state.last < state.now then state.last = state.now end
  end

  -- Units that were charged in another window do not belong to this one.
  local function give(_, state, units, _, charged_at)
    if charged_at < 0 or charged_at >= state.start then state.count = max(0, state.count - units) end
  end

  local function remaining(limit, state) return limit.quota - state.count end

  local function retry_after(_, state) return state.window_end - state.now end

  local function reset_after(_, state) return state.count > 0 and state.window_end - state.now or 0 end

  local function counts(_, state, charged_at, time) return charged_at >= state.start and time < state.window_end end

  local function encode(_, state) return pack('<dddd', state.start, state.window_end, state.count, state.last) end

  -- It lives until the window ends.
  local function outlives(_, state) return state.is_stored end

  local function extended(_, _, micros) return micros end

  -- The part of the value that changes, and its offset.
  local function changed(_, state) return '16', pack('<dd', state.count, state.last) end

  return {
    fits = fits,
    take = take,
    give = give,
    remaining = remaining,
    retry_after = retry_after,
    reset_after = reset_after,
    counts = counts,
    encode = encode,
  }
end
