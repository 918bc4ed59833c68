-- Limits that count over several regions. Two servers take part: in each region one that keeps the units granted to that region, and
-- the home, whose counter grants them. docs/internals/regions-protocol.md has the protocol.
--
-- In a region the variant counts. A check takes granted units; none is there that the home has not charged. Parameters: `lifetime`, the
-- microseconds for which a grant may be used; `home_now`, the latest that the time of the home can be, in microseconds, or 0 while nobody
-- knows; `home_time`, the best guess of it; and `region`, a number for the name of the region. Times of grants are the home's.
-- Stored value, a MessagePack array:
--   1 history of the server  2 last exchange  3 1 while that one is open  4 when it was sent, by the region  5 units wanted  6 those that
--   checks wait for  7 units to charge  8 units that go back, each with when it was charged  9 grants: units, charged at, expires at, each
--   10 left at home  11 until then the home grants nothing to costs of 22 and more  12 its counter is fresh then  13 window  14 granted in it,
--   as the home says  15 units a microsecond that were used lately  16 used since  17 this time, by the region  18 units to hold
--   19 charged beyond the grants  20 the largest cost that waits  21 what that lacks  22 the least cost that has to wait
--   23 units granted last  24 when they came, by the region  25 1 if checks lacked them then
--   26 when the window had begun, by the home, and 27 by the region; 0 for both where units do not end with a window
--   28 when the home last had less than was asked for, by the region, or 0
--   29 when the first units were charged that came, by the home, and 30 when they came, by the region
-- A server that was restarted or took over may lack what was used last: its history is another one, and what was granted counts as used.
-- It may also lack the last exchanges, and number others like them: an exchange is known by its number and the history that it began in.
--
-- At home the counter is one of the limit's algorithm. Beside it each region has a record: a MessagePack array of its last exchange, the
-- units granted by it, when, the window, the units granted in that, the history in which the exchange began, the units that the region holds
-- with these, when it called, and when the record began: a reset ends it, and nothing comes back that was charged before. One hash is for
-- all counters: the history of the server (`history`), its number (`epoch`), since when it holds (`since`), when any region had called last
-- before (`survived`), when it was found to have lost charges (`lost`), and for each region the
-- number of its calls (`calls:`), when it called last (`seen:`), the history of its server (`server:`), and the epoch in which it said how many
-- these are (`heard:`).
--
-- operate(limit, state, tools, what, …) does the steps of an exchange:
--   'ask'      in the region: the units that checks wait for, and the largest cost among them; microseconds that a grant has to last; those
--              after which an open exchange is sent again; 1 to ask in any case, 2 to give all units back. Replies 0 if nothing is to be done, 2
--              while another call is on its way; else 3, the number of the exchange, the history in which it began, units wanted, those that
--              checks wait for,
--              what the largest cost lacks, units to charge, the window, units granted in it, those that it has, the number of returns, and
--              each one's units and when they were charged
--   'grant'    at home: the number of the region's record and of the hash, the caller, microseconds in which a full counter is fresh; then
--              what 'ask' replied from the number of the exchange on. Replies 0; 1 if the exchange is older than the last one, or 2 if the
--              counter is blocked; then the history, its epoch, the number of calls, now, the units granted, when they were charged, units
--              left, microseconds for which nothing is granted (-1 for ever), those until it is fresh, the window, the units granted in it,
--              and the last exchange
--   'hello'    at home: the number of the hash, the caller. Replies the history, its epoch, the number of calls, now, and 1 if all regions
--              were heard
--   'holdings' at home: the numbers of the hash, and of each region's record with its name. Replies for each the units granted to it in the
--              window, those that it held when it called last for this counter, or -1, the milliseconds since that, and those since it called
--              for any, or -1
--   'deposit'  in the region: the number of the exchange, the history in which it began, what 'grant' replied from now on, when the grant
--              expires, 1 if units end with their window, and 1 if a reset came in between. Replies 1, or 0 if that exchange is not open
--   'forget'   in the region, after a reset at home: all that is held goes back, and nothing of the home is known. The home takes only what
--              it granted since
-- The caller is the region, the history of its server, the history and epoch of the home that it knows, or 0, and its number of calls.
--
-- Uses: time_to_live

local feature = { parameters = { 'home_now', 'home_time', 'region' } }

local MOST_GRANTS, KEPT_FOR, SMOOTHING = 6, 120000000, 300000
-- By which factor a region asks for more that has run dry, and the largest part of the quota that it may hold for that.
local GROWTH, GROWN = 4, 20
-- For so long, in microseconds, nobody waits for a home that had less than is asked for: units that come are for whoever asks then.
local SHORT = 500000
-- A region that was silent for this long before the home was replaced has lost nothing by that.
local SILENT, CALLS_KEPT_FOR = 600000000, 35 * 86400000000
-- What is granted least often: the home asks again so late, in microseconds, whether all regions were heard.
local ASK_AGAIN = 250000

local known_history

-- Identifies what the server has been written: every restart and every promotion begins another history.
local function history()
  if not known_history then
    local id = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
    if not id then error('ERR INFO replication has no master_replid, so that limits of scope world cannot notice restarts', 0) end
    known_history = tonumber(string.sub(id, 1, 12), 16)
  end
  return known_history
end

-- The history of what one region has on the server: another name on it is another region, which takes over nothing.
local function history_of(limit) return (history() + limit.region) % 2 ^ 48 end

-- Whether units of a grant may be used now. One of the future was made before the clock of the home was set back, and the counter may have
-- forgotten it. That time comes again: so by the region's clock, too, no grant outlives the last call.
local function is_usable(limit, state, i)
  local grants, home_now = state.grants, limit.home_now
  return grants[i + 1] <= home_now and home_now < grants[i + 2] and state.now - state.sent_at <= limit.lifetime
end

-- Units that may be used now, less what is owed.
local function usable(limit, state)
  local grants, units = state.grants, -state.owed
  if limit.home_now == 0 then return units end
  for i = 1, #grants, 3 do
    if is_usable(limit, state, i) then units = units + grants[i] end
  end
  return units
end

-- Removes what is used up. More grants than can be kept apart become one that is as old as the oldest of them.
local function compact(grants)
  local kept = {}
  for i = 1, #grants, 3 do
    if grants[i] > 0 then
      for part = 0, 2 do kept[#kept + 1] = grants[i + part] end
    end
  end
  while #kept > MOST_GRANTS * 3 do
    kept[4], kept[5], kept[6] = kept[1] + kept[4], min(kept[2], kept[5]), min(kept[3], kept[6])
    for _ = 1, 3 do table.remove(kept, 1) end
  end
  return kept
end

function feature.variant()
  local pool = { parameters = { 'lifetime' }, packed = true }

  function pool.open(limit, stored, now, _, state)
    local v = stored and cmsgpack.unpack(stored) or {}
    -- Only the number of the last exchange outlives a change of history.
    if v[1] ~= history_of(limit) then v = { nil, v[2] } end
    state.id = v[2] or 0
    state.is_open, state.sent_at, state.want, state.least, state.charge = v[3] == 1, v[4] or 0, v[5] or 0, v[6] or 0, v[7] or 0
    state.back, state.grants = v[8] or {}, v[9] or {}
    state.left, state.wait_until, state.fresh_at = v[10] or 0, v[11] or 0, v[12] or 0
    state.window, state.granted = v[13] or 0, v[14] or 0
    state.rate, state.used, state.since, state.hold, state.owed = v[15] or 0, v[16] or 0, v[17] or now, v[18] or 0, v[19] or 0
    state.largest, state.need, state.wait_cost, state.size = v[20] or 0, v[21] or 0, v[22] or 1, v[23] or 0
    state.came_at, state.was_dry, state.begun, state.begun_here = v[24] or 0, v[25] == 1, v[26] or 0, v[27] or 0
    state.short_at, state.first, state.first_here = v[28] or 0, v[29] or 0, v[30] or 0
  end

  function pool.encode(limit, s)
    return cmsgpack.pack({
      history_of(limit), s.id, s.is_open and 1 or 0, s.sent_at, s.want, s.least, s.charge, s.back, compact(s.grants), s.left, s.wait_until,
      s.fresh_at, s.window, s.granted, s.rate, s.used, s.since, s.hold, s.owed, s.largest, s.need, s.wait_cost,
      s.size, s.came_at, s.was_dry and 1 or 0, s.begun, s.begun_here, s.short_at,
      s.first, s.first_here,
    })
  end

  function pool.fits(limit, state, cost) return cost <= usable(limit, state) end

  -- Units that expire first are used first. What is charged beyond the grants is owed to the home.
  function pool.take(limit, state, cost)
    local grants = state.grants
    state.used = state.used + cost
    while cost > 0 do
      local first
      for i = 1, #grants, 3 do
        if grants[i] > 0 and is_usable(limit, state, i) and (not first or grants[i + 2] < grants[first + 2]) then first = i end
      end
      if not first then break end
      local units = min(cost, grants[first])
      grants[first], cost = grants[first] - units, cost - units
    end
    state.owed = state.owed + cost
  end

  -- They go back to the home, as if they had been charged as early as they can have been: they had been granted before.
  function pool.give(limit, state, units, _, charged_at)
    local paid = min(units, state.owed)
    state.owed, state.used = state.owed - paid, max(0, state.used - units)
    units = units - paid
    if units == 0 then return end
    local grants = state.grants
    local at = limit.home_now - (charged_at >= 0 and max(0, state.now - charged_at) or 0) - limit.lifetime
    -- What was charged since the window began is of it: older grants had expired. So is what nobody knows the time of, as in one region.
    local function is_since(time) return charged_at < 0 or charged_at >= time and charged_at <= state.now end
    if state.begun > 0 and is_since(state.begun_here) then at = max(at, state.begun) end
    -- No units were here before the first ones.
    if state.first > 0 and is_since(state.first_here) then at = max(at, state.first) end
    at = max(1, at)
    -- The home may have them for others, once they are back.
    state.wait_until, state.short_at = 0, 0
    for i = 1, #grants, 3 do
      if grants[i + 2] == 0 then
        grants[i], grants[i + 1] = grants[i] + units, min(at, grants[i + 1])
        return
      end
    end
    for _, value in ipairs({ units, at, 0 }) do grants[#grants + 1] = value end
  end

  function pool.remaining(limit, state)
    return min(limit.quota, usable(limit, state) + state.left)
  end

  local function waits(limit, state, cost) return cost >= state.wait_cost and state.wait_until > limit.home_time and limit.home_now > 0 end

  function pool.retry_after(limit, state, cost) return waits(limit, state, cost) and state.wait_until - limit.home_time or 1 end

  function pool.reset_after(limit, state) return max(0, limit.home_now > 0 and state.fresh_at - limit.home_time or 0) end

  function pool.keep_for(_, _, reset_after) return max(reset_after, KEPT_FOR) end

  -- How many units are there; whether the home may grant some, whether more should be asked for, and whether a call is on its way.
  function pool.note(limit, state, cost)
    local units = usable(limit, state)
    local is_due = units < state.hold * 0.6 or state.owed > 0
    local since = state.now - state.short_at
    -- A new window has units for all.
    local is_new = state.begun > 0 and state.window <= limit.home_time
    local is_short = state.short_at > 0 and since >= 0 and since < SHORT and not is_new
    local bits = ((is_short or waits(limit, state, cost)) and 0 or 4) + (is_due and 2 or 0) + (state.is_open and 1 or 0)
    return max(0, min(units, 2 ^ 40)) * 8 + bits
  end

  return pool
end

local steps = {}

-- What was used lately, as an average that forgets within a second.
local function measure(state, now)
  local span = now - state.since
  if span < 0 then state.since, state.used = now, 0 end
  if span < 10000 then return end
  state.rate = state.rate + (state.used / span - state.rate) * (span / (span + SMOOTHING))
  state.used, state.since = 0, now
end

-- Moves units that can no longer be used, and those beyond what is wanted, to what goes back.
local function send_back(limit, state, keep)
  local grants, back, excess = state.grants, {}, usable(limit, state) - keep
  for i = #grants - 2, 1, -3 do
    local units = grants[i]
    if is_usable(limit, state, i) then
      units = max(0, min(units, excess))
      excess = excess - units
    end
    if units > 0 then
      back[#back + 1], back[#back + 2] = units, grants[i + 1]
      grants[i] = grants[i] - units
    end
  end
  return back
end

function steps.ask(limit, state, tools, waiting, largest, lasts, patience, which)
  local add, now, gives_all = tools.add, state.now, which == 2
  if limit.home_now == 0 then return add(0) end
  if state.is_open then
    if now >= state.sent_at and now - state.sent_at < patience then return add(2) end
  else
    measure(state, now)
    local here, wanted = usable(limit, state), state.rate * lasts
    -- Whoever had nothing left when units came, and soon needs more again, wants more than was used: but not so much that others lack it.
    if state.was_dry and now >= state.came_at and now - state.came_at < lasts then
      wanted = max(wanted, min(GROWTH * max(state.size, state.hold, waiting), limit.quota / GROWN))
    end
    wanted = wanted >= 0.05 and not gives_all and ceil(wanted) or 0
    local before = state.hold
    state.hold = wanted
    local back = send_back(limit, state, max(2 * wanted, waiting))
    local want = 0
    if waiting > here or here < wanted * 0.8 then want = waiting + wanted - here end
    if want <= 0 and #back == 0 and state.owed <= 0 and which ~= 1 then
      add(0)
      -- Else it would seem due with every decision.
      return wanted < before
    end
    state.id, state.is_open, state.back = max(state.id + 1, floor(limit.home_now)), true, back
    state.want, state.least, state.charge, state.owed = max(0, want), max(0, min(want, waiting - here)), state.owed, 0
    state.largest, state.need = max(1, largest), max(0, min(state.least, largest - here))
  end
  state.sent_at = now
  local asked = { 3, state.id, history_of(limit), state.want, state.least, state.need, state.charge, state.window, state.granted }
  for _, value in ipairs(asked) do add(value) end
  add(max(0, usable(limit, state)))
  add(#state.back / 2)
  for _, value in ipairs(state.back) do add(value) end
  return true
end

-- Nobody may use what is held.
local function end_grants(grants)
  for i = 1, #grants, 3 do grants[i + 2] = 0 end
end

-- The counter was reset at home: what is held may have been charged before.
local function forget(state)
  end_grants(state.grants)
  state.left, state.wait_until, state.fresh_at, state.short_at, state.window, state.granted = 0, 0, 0, 0, 0, 0
  state.begun, state.begun_here, state.first, state.first_here = 0, 0, 0, 0
end

function steps.forget(_, state, tools)
  tools.add(1)
  if state.id == 0 and state.owed == 0 and #state.grants == 0 then return false end
  state.owed, state.charge = 0, 0
  -- Others may need the units more.
  state.rate, state.used, state.since, state.hold, state.size, state.was_dry = 0, 0, state.now, 0, 0, false
  forget(state)
  return true
end

function steps.deposit(
  limit, state, tools, id, origin, outcome, home_now, units, charged_at, left, wait, reset_after, window, granted, last, expires_at, of_window,
  was_reset
)
  if not state.is_open or state.id ~= id or origin ~= history_of(limit) then return tools.add(0) end
  local grants = state.grants
  -- A region of few requests may use its last unit just before more come, and lack none.
  state.was_dry = usable(limit, state) <= 0 and (state.least > 0 or state.short_at > 0)
  -- What the home has left does for smaller costs.
  local is_short = left == 0 and units < state.least or state.short_at > 0 and units < state.want
  state.short_at = is_short and state.now or 0
  state.wait_cost = units < state.need and left > 0 and state.largest or 1
  state.is_open, state.back, state.want, state.least, state.need, state.charge = false, {}, 0, 0, 0, 0
  state.id = max(state.id, last)
  if of_window == 0 or window <= home_now then
    state.begun, state.begun_here = 0, 0
  elseif window ~= state.window or state.begun == 0 then
    state.begun, state.begun_here = home_now, state.now
  end
  state.left, state.fresh_at, state.window, state.granted = left, home_now + reset_after, window, granted
  state.wait_until = wait == -1 and 2 ^ 52 or wait > 0 and home_now + wait or 0
  -- Nobody may use what is held while the counter is blocked.
  if outcome == 2 then
    expires_at = 0
    end_grants(grants)
  end
  if units > 0 then
    for _, value in ipairs({ units, charged_at, expires_at }) do grants[#grants + 1] = value end
    state.size, state.came_at = units, state.now
    if state.first == 0 then state.first, state.first_here = charged_at, state.now end
  end
  if was_reset == 1 then forget(state) end
  tools.add(1)
  return true
end

-- What the home knows of its regions, with the call that has come. A server with another history may lack charges: it grants nothing to
-- anybody until all regions have said how many calls were answered. One that got more answers than the server knows has lost some.
local function hear(number, region, server, known, known_epoch, calls, now)
  local key, fields = KEYS[number], {}
  local stored = redis.pcall('HGETALL', key)
  if stored.err then
    -- A value of another type tells as much as none.
    if not string.find(stored.err, 'WRONGTYPE') then error(stored.err, 0) end
    redis.call('DEL', key)
    stored = {}
  end
  for i = 1, #stored, 2 do fields[stored[i]] = tonumber(stored[i + 1]) end
  local function of(name) return fields[name] or 0 end
  local home = { history = history(), epoch = of('epoch'), since = of('since'), lost = min(of('lost'), now), is_heard = true }
  local survived, was_seen = of('survived'), of('seen:' .. region)
  if of('history') ~= home.history then
    -- Without any charge that it could have lost it is a new home, unless this region knows one.
    if #stored == 0 and known ~= 0 then home.lost = now end
    home.epoch, home.since = home.epoch + 1, now
    for name, seen in pairs(fields) do
      if string.find(name, '^seen:') then survived = max(survived, seen) end
    end
  end
  -- Regions follow the newest epoch, whatever the clocks of servers say.
  if known ~= home.history and known_epoch >= home.epoch then home.epoch, home.since = known_epoch + 1, now end
  if calls > of('calls:' .. region) then home.lost = now end
  -- A region whose server lost what it knew proves nothing by the number of its calls.
  local forgot = known == 0 or of('server:' .. region) ~= server
  if forgot and of('heard:' .. region) ~= home.epoch and was_seen > 0 and was_seen > survived - SILENT then home.lost = now end
  -- It may know of calls to the server before: only what it counted since it knows this one says all. Calls before that are not counted,
  -- or they would be taken for those that were lost; they get no units. All that follow count, also those that had begun before.
  if known == home.history and known_epoch == home.epoch or known == 0 then fields['heard:' .. region] = home.epoch end
  home.calls = max(calls, of('calls:' .. region)) + (of('heard:' .. region) == home.epoch and 1 or 0)
  home.is_known = known ~= 0
  fields['seen:' .. region] = now
  for name, seen in pairs(fields) do
    local other = string.match(name, '^seen:(.*)$')
    if other and of('heard:' .. other) ~= home.epoch and (seen > survived - SILENT or other == region) then home.is_heard = false end
  end
  local function text(value) return string.format('%.0f', value) end
  redis.call(
    'HSET', key, 'history', text(home.history), 'epoch', text(home.epoch), 'since', text(home.since), 'survived', text(survived),
    'lost', text(home.lost), 'calls:' .. region, text(home.calls), 'seen:' .. region, text(now), 'server:' .. region, text(server),
    'heard:' .. region, text(of('heard:' .. region))
  )
  redis.call('PEXPIRE', key, time_to_live(CALLS_KEPT_FOR))
  return home
end

local heard

-- Nothing is exchanged: the region only says that it is there.
function steps.hello(_, state, tools, hash, region, server, known, known_epoch, calls)
  heard = heard or hear(hash, region, server, known, known_epoch, calls, state.now)
  for _, value in ipairs({ heard.history, heard.epoch, heard.calls, state.now, heard.is_heard and 1 or 0 }) do tools.add(value) end
end

-- Until when the home grants nothing, since it may not know what it granted.
local function uncertain_until(limit, home, horizon)
  -- The window of a calendar ends when it ends, and may have begun since.
  local window_start, window_end, ends = limit.start or 0, limit.window_end, 0
  if home.lost > 0 and home.lost >= window_start then ends = window_end or home.lost + horizon end
  if not home.is_heard and home.since >= window_start then ends = max(ends, window_end or home.since + horizon) end
  return ends
end

-- What the home has of a region; nothing of what is no record.
local function record_of(stored)
  local readable, record = pcall(cmsgpack.unpack, stored or '')
  if not stored or not readable or type(record) ~= 'table' then return nil end
  for i = 1, 9 do
    if type(record[i]) ~= 'number' then return nil end
  end
  return record
end

function steps.grant(
  limit, state, tools, number, hash, region, server, known, known_epoch, calls, horizon, id, origin, want, least, need, charge, window, granted,
  held, _, ...
)
  local algorithm, now, add = limit.algorithm, state.now, tools.add
  -- All exchanges of a call are of one region.
  heard = heard or hear(hash, region, server, known, known_epoch, calls, now)
  local record = record_of(tools.values[number])
  local last, units, charged_at, in_window, total, began_in = unpack(record or { 0, 0, 0, 0, 0, 0 })
  local changed, outcome, ends = false, 0, uncertain_until(limit, heard, horizon)
  -- Who knows no home cannot tell which answers on their way are of an older one.
  local may_grant = now >= ends and heard.is_known
  local function left() return state.blocked_until and 0 or max(0, algorithm.remaining(limit, state)) end
  local function window_end() return now + algorithm.reset_after(limit, state) end
  if id < last or id == last and origin ~= began_in then
    outcome, units, charged_at = 1, 0, 0
  elseif id > last then
    if in_window ~= window_end() then total = 0 end
    -- The home knows less of this window than it has told. Without a record, it was reset, or regions prove what it has lost.
    local missing = record and window > 0 and window == window_end() and max(0, granted - total) or 0
    -- What was charged before the record began counts here no more.
    local returned, since = { ... }, record and record[9] or now
    for i = 1, #returned, 2 do
      local before = algorithm.remaining(limit, state)
      -- What was charged in the future was charged before the clock was set back: how much of it counts is not known.
      if returned[i + 1] >= since and returned[i + 1] <= now then algorithm.give(limit, state, returned[i], -1, returned[i + 1]) end
      total, changed = max(0, total - (algorithm.remaining(limit, state) - before)), true
    end
    local owed = max(0, min(charge + missing, limit.quota + algorithm.remaining(limit, state)))
    if owed > 0 then
      algorithm.take(limit, state, owed)
      total, changed = total + owed, true
    end
    units, charged_at = 0, now
    -- As many as are waited for, if the largest cost has enough then; and in advance at most half of what is left.
    if may_grant and left() >= need then
      units = min(want, left(), max(least, floor(left() / 2)))
    elseif may_grant then
      units = min(max(0, least - need), left())
    end
    if units > 0 then
      algorithm.take(limit, state, units)
      total, changed = total + units, true
    end
    last, in_window = id, window_end()
    local value = cmsgpack.pack({ last, units, charged_at, in_window, total, origin, held + units, now, since })
    tools.values[number] = value
    redis.call('SET', KEYS[number], value, 'PX', time_to_live(max(algorithm.reset_after(limit, state), KEPT_FOR)))
  end
  if state.blocked_until then outcome = max(outcome, 2) end
  local reset_after = algorithm.reset_after(limit, state)
  local wait = 0
  if not may_grant then
    wait = heard.is_heard and heard.is_known and ends - now or ASK_AGAIN
  elseif units < need or left() == 0 then
    wait = tools.wait_for(limit, state, max(1, need - units))
    if wait == math.huge then wait = -1 end
  end
  local replied = { outcome, heard.history, heard.epoch, heard.calls, now, units, charged_at, left(), wait, reset_after, in_window, total, last }
  for _, value in ipairs(replied) do add(value) end
  return changed or state.migrated
end

function steps.holdings(_, state, tools, hash, ...)
  local regions = { ... }
  for i = 1, #regions, 2 do
    local record = record_of(tools.values[regions[i]]) or {}
    local seen = tonumber(redis.call('HGET', KEYS[hash], 'seen:' .. regions[i + 1]) or nil)
    local total, held, at = record[5] or 0, record[7] or -1, record[8] or state.now
    for _, value in ipairs({ total, held, floor(max(0, state.now - at) / 1000), seen and floor(max(0, state.now - seen) / 1000) or -1 }) do
      tools.add(value)
    end
  end
end

function feature.operate(limit, state, tools, step, ...) return steps[step](limit, state, tools, ...) end

return feature
