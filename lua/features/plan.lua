-- A variant of calendar-window and budget for plans: a share of what is left of it moves into the next one, once, and credits are taken once all is used.
-- Parameters: those of the algorithm; when the window before began, and the one before that; when the next one ends, and the one
-- after it; rollover in millionths; 1 with credits; 1 where nothing says where windows begin, and the one that runs is kept to.
-- Stored value: that of window-count.lua, then three doubles: units that moved here; the rate; credits that are used in this window.
-- The credits that are left are in a key of their own, `:credits`, which all generations of the counter share.
-- A state's `gross` is what is left and what is used in this window; the `taken` part of it is off the balance already. Its `age` is the
-- number of windows since it was charged, nothing where nobody knows the key. Its `rate` is the one under which it was charged
-- last: whoever gives units back may know an older one, and must not reckon credits anew by that. Its `returned` units are of holds that
-- lapsed before the stored window ended, and that nobody asked for until then. Its `least` is the smallest rate under which it was charged
-- in its window: what is left is left of that. Where it is smaller than the rate, it stands before the value as the quota that units are for.
-- What it has `kept` is the stored value of a finished window. It stays stored until a request is charged: a refund, credit or settlement is
-- no request, so it changes neither what moves nor for how long the key is known.
--
-- Uses: as_text, in_proportion, key_beside, time_to_live

local feature = { parameters = { 'before', 'earlier', 'next_end', 'after_end', 'rollover', 'has_credits', 'keeps_window' } }

local MILLION = 1000000
-- Ten years, since no key is kept for ever.
local CREDITS_KEPT_FOR = 10 * 366 * 86400 * MILLION
local MOST_CREDITS = 2 ^ 51

local function credits_key(state) return key_beside(state, ':credits') end

-- The full rate, including the part that is kept from some requests.
local function whole_of(limit) return limit.whole or limit.quota end

local function moving(limit, units) return units - in_proportion(units, MILLION - limit.rollover, MILLION) end

-- What is left of a window's own rate: units that moved into it are used first.
local function left_of(rate, count, moved) return max(0, rate - max(0, count - moved)) end

local function spent_under(rate, state) return max(0, min(state.gross, state.count - rate - state.moved)) end

local function capacity_of(limit, state) return limit.quota + state.moved + state.gross end

local function credits_of(limit, state) return state.gross - spent_under(whole_of(limit), state) end

-- Whether the stored value stays.
local function keeps(state) return state.kept and state.age ~= 0 end

-- Whether the last finished window in the list began then.
local function is_known(state, start)
  local newest = redis.pcall('LRANGE', KEYS[state.number + 1], '-3', '-3')
  return tonumber(newest[1] or nil) == start
end

function feature.variant(plan)
  local open_window, take_window, encode_window, save_window = plan.open, plan.take, plan.encode, plan.save
  local history_of_windows = plan.history

  plan.encoded_size = 56
  plan.reuses_state = nil
  plan.varies = true

  function plan.open(limit, stored, now, key, state, least)
    local running, is_followed, window_start, window_end, count, last, moved, rate, spent = limit, false, nil, nil, 0, nil, 0, 0, 0
    if stored then
      window_start, window_end, count, last, moved, rate, spent = unpack_doubles('<ddddddd', stored)
      local runs = now >= window_start or last - now < window_end - window_start
      is_followed = limit.keeps_window == 1 and now < window_end and runs
      if is_followed then
        running = setmetatable({ start = min(window_start, now), window_end = window_end }, { __index = limit })
      end
    end
    -- Earlier charges belong to whichever window they were made in, not to this one.
    if limit.keeps_window == 1 and not is_followed then running = setmetatable({ start = max(limit.start, now - now % 1000) }, { __index = limit }) end
    if open_window(running, count > 0 and string.sub(stored, 1, 32), now, key, state) then return true end
    state.kept = nil
    if state.finished and is_known(state, state.finished[1]) then state.finished = nil end
    if is_followed then state.start = window_start end
    state.moved, state.gross, state.taken, state.age, state.rate, state.least = 0, 0, 0, nil, whole_of(limit), whole_of(limit)
    least = least or rate
    if stored and now < window_end then
      state.moved, state.taken, state.age, state.rate, state.least = moved, spent, 0, rate, least
    elseif stored then
      count = max(0, count - (state.returned or 0))
      -- Credits that came back with these are still off the balance.
      state.taken = spent - max(0, min(spent, count - rate - moved))
      if limit.rollover > 0 and window_end > limit.before then
        state.moved, state.age = moving(limit, left_of(min(whole_of(limit), least), count, moved)), 1
      elseif limit.rollover > 0 and window_end > limit.earlier then
        state.moved, state.age = moving(limit, min(whole_of(limit), rate)), 2
      end
      if state.age then
        state.rate, state.least = rate, rate
        state.kept = {
          value = pack('<ddddddd', window_start, window_end, count, last, moved, rate, spent - state.taken),
          least = least < rate and least or nil,
        }
      end
    end
    if limit.has_credits == 1 then
      state.balance = tonumber(redis.call('MGET', credits_key(state))[1] or 0) or 0
      state.gross = state.balance + state.taken
    end
  end

  function plan.ended(limit, state, stored, now, holds)
    local window_start, window_end = unpack_doubles('<dd', stored)
    if now >= window_end then state.returned = holds:units_within(state, window_start, window_end) end
  end

  -- The credits of lapsed holds come back with the next request.
  function plan.held_for(limit, state, holds)
    if limit.has_credits ~= 1 then return 0 end
    local come_back = spent_under(state.rate, state) > 0 and holds:is_within(state, state.start, state.window_end)
    return come_back and CREDITS_KEPT_FOR or 0, state.window_end - state.now
  end

  function plan.fits(limit, state, cost) return state.count + cost <= capacity_of(limit, state) end

  -- Units used beyond those of a hold are not a check.
  function plan.take_settled(limit, state, cost)
    take_window(limit, state, cost)
    state.age = 0
  end

  -- Records the rate under which it is charged.
  local function note_rate(limit, state)
    state.rate = whole_of(limit)
    state.least = state.count == 0 and state.rate or min(state.least, state.rate)
  end

  function plan.units_for(_, state)
    if keeps(state) then return state.kept.least end
    return state.least < state.rate and state.least or nil
  end

  function plan.take(limit, state, cost)
    note_rate(limit, state)
    plan.take_settled(limit, state, cost)
  end

  function plan.remaining(limit, state) return capacity_of(limit, state) - state.count end

  local function wait_of(limit, state, cost)
    local credits, left, of_silence = credits_of(limit, state), 0, min(whole_of(limit), state.rate)
    if state.age == 0 then
      left = left_of(min(whole_of(limit), state.least), state.count, state.moved)
    elseif state.age == 1 then
      left = of_silence
    end
    if cost <= limit.quota + moving(limit, left) + credits then return state.window_end - state.now end
    if state.age == 0 and limit.rollover > 0 and cost <= limit.quota + moving(limit, of_silence) + credits then
      return state.window_end + limit.next_end - limit.window_end - state.now
    end
    return math.huge
  end

  function plan.retry_after(limit, state, cost, returned)
    local count = state.count
    state.count = max(0, count - (returned or 0))
    local micros = wait_of(limit, state, cost)
    state.count = count
    return micros
  end

  function plan.keep_for(limit, state, reset_after)
    local micros = limit.retain > 0 and reset_after > 0 and reset_after + limit.retain or 0
    if limit.rollover == 0 or not state.age then return micros end
    -- A key is known until two windows have ended without a request. Without the anchor it is unknown when they end.
    local ends = limit.window_end
    if state.age == 0 or limit.keeps_window == 1 then ends = limit.after_end elseif state.age == 1 then ends = limit.next_end end
    return max(micros, state.window_end + ends - limit.window_end - state.now)
  end

  function plan.encode(limit, state)
    if keeps(state) then return state.kept.value end
    return encode_window(limit, state) .. pack('<ddd', state.moved, state.rate, spent_under(state.rate, state))
  end

  function plan.save(limit, state, key)
    save_window(limit, state, key)
    if limit.has_credits ~= 1 then return end
    local spent = spent_under(state.rate, state)
    local credits = state.gross - spent
    if credits == state.balance then return end
    if credits > 0 then
      redis.call('SET', credits_key(state), as_text(credits), 'PX', time_to_live(CREDITS_KEPT_FOR))
    else
      redis.call('DEL', credits_key(state))
    end
    state.balance, state.taken = credits, spent
  end

  plan.capacity = capacity_of
  plan.credits = credits_of

  -- Adds credits, or takes back that many, or what is left.
  function plan.credit(limit, state, units)
    local left = credits_of(limit, state)
    -- A counter that is reset leaves the credits that the present rate leaves.
    if units == 0 then note_rate(limit, state) end
    state.gross = state.gross + (units > 0 and min(units, MOST_CREDITS - left) or -min(-units, left))
  end

  -- An older release lists a window again that is still kept; what was settled later is in the first entry.
  function plan.history(limit, state, key)
    local windows, listed = history_of_windows(limit, state, key), {}
    for i = 1, #windows, 3 do
      local is_again = i > 1 and windows[i] == windows[i - 3]
      for j = i, is_again and 0 or i + 2 do listed[#listed + 1] = windows[j] end
    end
    return listed
  end

  return plan
end

return feature
