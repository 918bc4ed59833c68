-- Units that are held until they are settled, of limits with `hold`: they are charged when they are reserved, and what was really used
-- replaces them later, where they were charged. Stored in the counter's key `:holds`: a sorted set with a member
-- `id:units:time:terms` for each hold, by when it lapses; once it was looked at after that, by that less 2^53. Its terms are twice the
-- windows of the limit that reserved it, and 1 if its units are given back then. All are of the same windows: a counter that is written
-- under others may have lost their units, and forgets them. A state has `lapsed` until it is saved: those whose units it counts no longer;
-- whether there are `more_lapsed`; and whether it `holds_own`, so that this was looked at.
--
-- duration, releases, known, next, windows: microseconds after which a hold lapses; whether its units are given back then (0 or 1); for how
-- long it is known at least; the identifier of the next one, which no other call uses; what tells the windows in which its units count
-- from those of other options
--
-- Uses: as_text, ask, key_beside, now, time_to_live

local holds = { parameters = { 'duration', 'releases', 'known', 'next', 'windows' } }

-- The most lapsed holds to release in one step; and the most to examine for a wait, and for each page of them.
local MOST_AT_ONCE, PAGE = 1024, 256
-- The most lapsed holds to keep, so that they can still be settled; the oldest are forgotten first.
local MOST_LAPSED = 1000
local RELEASED = 2 ^ 53
-- The most values to pass to a command at once: a score and a member each.
local MOST_MOVED = 1000

local function member_of(terms, id, units, time, releases)
  return as_text(id) .. ':' .. as_text(units) .. ':' .. as_text(time) .. ':' .. as_text(2 * terms.windows + releases)
end

-- Units that come back when a hold lapses, and when they were charged. None of other windows, which may be long over.
local function read_member(terms, member)
  local units, time, written = string.match(member, '^%d+:(%d+):(%d+):(%d+)$')
  if not written or tonumber(written) ~= 2 * terms.windows + 1 then return 0, 0 end
  return tonumber(units), tonumber(time)
end

-- Runs a command on the holds of a counter.
local function ask_holds(command, state, ...) return ask(command, key_beside(state, ':holds'), ...) end

-- Changes what counts where it was charged: never in a window behind that one.
local function change(limit, state, note, difference, charged_at)
  -- Units that the quota keeps for others may have been used, too.
  limit = limit.opened or limit
  note(limit, state, difference, charged_at)
  local algorithm = limit.algorithm
  if not algorithm.counts(limit, state, charged_at, now) then
    if algorithm.correct then algorithm.correct(limit, state, charged_at, difference) end
  elseif difference < 0 then
    algorithm.give(limit, state, -difference, -1, charged_at)
  elseif difference > 0 then
    local most = algorithm.most and algorithm.most(limit) or MAX_OWED
    local counted = limit.quota - algorithm.remaining(limit, state)
    local take = algorithm.take_settled or algorithm.take
    take(limit, state, max(0, min(difference, most - counted)))
  end
end

-- Notes what came back before the window ended that is stored.
function holds.stored(terms, limit, state, value)
  local algorithm = limit.algorithm
  if algorithm.ended then algorithm.ended(limit, state, value, now, terms) end
end

-- Gives back the units of lapsed holds that were reserved with `onLapse: 'release'`.
function holds.opened(terms, limit, state, note, all)
  -- A finished window that stays stored is stored without any of them.
  local most = (all or state.kept) and -1 or MOST_AT_ONCE
  local lapsed = ask_holds('ZRANGEBYSCORE', state, '(0', as_text(now), 'WITHSCORES', 'LIMIT', '0', tostring(most))
  if #lapsed == 0 then return end
  state.lapsed = {}
  for i = 1, #lapsed, 2 do
    local units, time = read_member(terms, lapsed[i])
    state.lapsed[lapsed[i]] = tonumber(lapsed[i + 1])
    if units > 0 then change(limit, state, note, -units, time) end
  end
  -- Further ones are next.
  if #lapsed == 2 * most then state.migrated, state.more_lapsed = true, true end
end

-- Holds of other windows can no longer be settled: the counter is written under these.
local function forget_others(terms, state)
  if state.holds_own then return end
  state.holds_own = true
  local first = ask_holds('ZRANGEBYSCORE', state, '-inf', '+inf', 'LIMIT', '0', '1')[1]
  local written = string.match(first or '', ':(%d+)$')
  if not written or floor(tonumber(written) / 2) == terms.windows then return end
  ask_holds('DEL', state)
  state.lapsed = nil
end

-- Whether any hold is known that has not been settled.
function holds.is_any(_, state) return ask_holds('ZCOUNT', state, '-inf', '+inf') > 0 end

-- The units, not given back yet, that were charged from one time on and come back before another.
function holds.units_within(terms, state, first, last)
  local sum = 0
  for _, member in ipairs(ask_holds('ZRANGEBYSCORE', state, '(0', '(' .. as_text(last))) do
    local units, time = read_member(terms, member)
    if time >= first then sum = sum + units end
  end
  return sum
end

-- Whether there are any such units. It examines a limited number of holds, and assumes so if they are not among these.
function holds.is_within(terms, state, first, last)
  for page = 0, MOST_AT_ONCE - PAGE, PAGE do
    local held = ask_holds('ZRANGEBYSCORE', state, '(0', '(' .. as_text(last), 'LIMIT', tostring(page), tostring(PAGE))
    for _, member in ipairs(held) do
      local units, time = read_member(terms, member)
      if units > 0 and time >= first then return true end
    end
    if #held < PAGE then return false end
  end
  return true
end

-- Returns the microseconds for which the counter has to be kept.
function holds.saved(terms, limit, state, keep_for)
  local algorithm = limit.algorithm
  forget_others(terms, state)
  if state.lapsed then
    -- Holds that were settled meanwhile are gone.
    local moved = {}
    for member, lapses in pairs(state.lapsed) do
      moved[#moved + 1], moved[#moved + 2] = as_text(lapses - RELEASED), member
      if #moved == MOST_MOVED then
        ask_holds('ZADD', state, 'XX', unpack(moved))
        moved = {}
      end
    end
    if #moved > 0 then ask_holds('ZADD', state, 'XX', unpack(moved)) end
    state.lapsed = nil
  end
  if not algorithm.held_for then return keep_for end
  local needed, known = algorithm.held_for(limit, state, terms)
  keep_for = max(keep_for, needed)
  if known then ask_holds('PEXPIRE', state, time_to_live(max(keep_for, known, terms.known))) end
  return keep_for
end

-- Holds the charged units, and returns the identifier of the hold.
function holds.reserved(terms, limit, state, units)
  local algorithm, id = limit.algorithm, terms.next
  terms.next = id + 1
  forget_others(terms, state)
  ask_holds('ZADD', state, as_text(now + terms.duration), member_of(terms, id, units, now, terms.releases))
  -- Holds whose units are still to be given back are not forgotten.
  local excess = ask_holds('ZCOUNT', state, '-inf', (terms.releases == 1 or state.more_lapsed) and '(0' or as_text(now)) - MOST_LAPSED
  if excess > 0 then ask_holds('ZREMRANGEBYRANK', state, '0', as_text(excess - 1)) end
  local micros = algorithm.reset_after(limit, state)
  if algorithm.keep_for then micros = max(micros, algorithm.keep_for(limit, state, micros)) end
  local text = time_to_live(max(micros, terms.known))
  if tonumber(text) > ask_holds('PTTL', state) then ask_holds('PEXPIRE', state, text) end
  return id
end

-- Replaces held units by those really used, once. Returns whether the hold was known.
function holds.settled(terms, limit, state, note, units, id, time, actual)
  local releases = terms.releases
  local member = member_of(terms, id, units, time, releases)
  local lapses = tonumber(ask_holds('ZSCORE', state, member) or nil)
  if not lapses then
    -- It was reserved before `onLapse` was changed.
    releases = 1 - releases
    member = member_of(terms, id, units, time, releases)
    lapses = tonumber(ask_holds('ZSCORE', state, member) or nil)
  end
  if not lapses then return false end
  local charged = releases == 1 and (lapses < 0 or state.lapsed and state.lapsed[member]) and 0 or units
  change(limit, state, note, actual - charged, time)
  ask_holds('ZREM', state, member)
  return true
end

-- Microseconds until enough holds have lapsed for a cost to fit, or leave enough to move on; or, if there are too many, until
-- the last of those examined lapses.
function holds.until_fits(terms, limit, state, cost)
  local algorithm, releases = limit.algorithm, terms.releases == 1
  if releases and state.more_lapsed then return 1 end
  -- If more than everything is missing, no lapse makes room at once.
  local excess = cost - algorithm.remaining(limit, state)
  if algorithm.varies and cost > algorithm.capacity(limit, state) then excess = math.huge end
  local returned, lapses = 0, now
  for first = 0, MOST_AT_ONCE - PAGE, PAGE do
    local running = ask_holds(
      'ZRANGEBYSCORE', state, '(' .. as_text(now), '+inf', 'WITHSCORES', 'LIMIT', tostring(first), tostring(PAGE)
    )
    for i = 1, #running, 2 do
      local units, time = read_member(terms, running[i])
      lapses = tonumber(running[i + 1])
      if algorithm.counts(limit, state, time, lapses) then returned = returned + units end
      if returned >= excess then return lapses - now end
    end
    -- Of a limit that charges what lapses, only those are given back that were reserved before `onLapse` was changed.
    if #running < 2 * PAGE or not releases then
      return algorithm.varies and returned > 0 and algorithm.retry_after(limit, state, cost, returned) or math.huge
    end
  end
  return lapses - now
end

return holds
