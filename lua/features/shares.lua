-- An algorithm for a limit whose units tenants share. The total is counted as it is without shares; besides it stand, in keys of their
-- own, what the tenants have in common and what each one asked and got, by slices of the span in which the quota comes back.
-- Parameters: those of the algorithm, then the units that come back in a span, the length of a slice (microseconds), the floor (units that each active tenant may use
-- in a span at least), the weight and the name of the tenant that asks, which is empty if none does.
-- Stored: MessagePack arrays in keys of their own. Behind `:shares`, three that tenants have in common. First the epoch, the
-- length and the number of the newest slice; then, of each slice from the newest on, the weights of the tenants that asked last in it,
-- the units that these are expected to use in a span, and the units used as far as they were expected. Second, of the active
-- tenants of whom most is expected by weight, each one's name, the slice in which it asked last, its weight and expected units. Third,
-- the units that each of these used in each slice; a release before this one writes none. Behind `:share:` and the name of a
-- tenant: epoch, number of its newest slice, weight and expected units as they stand in the first, the units that were used in each
-- slice, those that were asked, of one slice more.
-- Both can be forgotten at any time: then tenants have used nothing yet, and the total holds as before.
--
-- Uses: in_proportion, key_beside, time_to_live

local feature = { parameters = { 'share_units', 'share_length', 'floor', 'weight', 'tenant' } }

function feature.variant(algorithm)
  local SLICES = 10
  local AGES = SLICES + 1
  -- The number of slices for which a tenant is active after it has asked.
  local ACTIVE = AGES + 2
  -- How many tenants the sums list by name. Of each, its name, the slice in which it asked last, weight and expected units; then the units
  -- that it used in each slice, the first of which is UNKNOWN where a release before this one has written none.
  local MOST_LEADERS, NAMED = 8, 4
  local VALUES, UNKNOWN = NAMED + AGES, -1

  local function total_of(counts, from, to)
    local total = 0
    for i = from, to do total = total + counts[i] end
    return total
  end

  local function later(counts, by)
    if by == 0 then return counts end
    local moved = {}
    for i = 1, #counts do moved[i] = i > by and counts[i - by] or 0 end
    return moved
  end

  local function part_of(numbers, first, count)
    local part = {}
    for i = 1, count do part[i] = numbers[first + i - 1] or 0 end
    return part
  end

  -- What is stored of leaders in two arrays, as one.
  local function joined(named, used)
    local leaders, is_known = {}, used and #used * NAMED == #named * AGES
    for i = 1, #named, NAMED do
      local at, first = #leaders, (i - 1) / NAMED * AGES
      for j = 1, NAMED do leaders[at + j] = named[i + j - 1] end
      for age = 1, AGES do leaders[at + NAMED + age] = is_known and used[first + age] or UNKNOWN end
    end
    return leaders
  end

  -- The other way round.
  local function parted(leaders)
    local named, used = {}, {}
    for i = 1, #leaders, VALUES do
      for j = 0, VALUES - 1 do
        local into = j < NAMED and named or used
        into[#into + 1] = leaders[i + j]
      end
    end
    return named, used
  end

  -- Fails unless it is an array of `count` numbers. A release without leaders writes none.
  local function unpacked_numbers(value, count)
    local numbers, named, used = cmsgpack.unpack(value)
    if #numbers ~= count or not total_of(numbers, 1, count) then return nil end
    local leaders = joined(named or {}, used)
    for i = 1, #leaders, VALUES do
      if leaders[i] .. '' ~= leaders[i] or not total_of(leaders, i + 1, i + VALUES - 1) then return nil end
    end
    return numbers, leaders
  end

  local function numbers_of(value, count)
    if not value then return nil end
    local readable, numbers, leaders = pcall(unpacked_numbers, value, count)
    if readable then return numbers, leaders end
  end

  -- The units that a tenant may use in a span, whatever others do.
  local function part_for(limit, weight, weights)
    return min(limit.share_units, max(limit.floor, in_proportion(limit.share_units, weight, weights)))
  end

  -- Of the tenants with the highest expectation by weight, how much the others are expected to use beyond their parts.
  local function beyond_parts(limit, state)
    local leaders, newest = state.leaders, state.sums.newest
    local weights, beyond = limit.weight + total_of(state.sums.weights, 1, ACTIVE), {}
    for i = 1, #leaders, VALUES do
      local since, weight, expected = newest - leaders[i + 1], leaders[i + 2], leaders[i + 3]
      if
        leaders[i] ~= limit.tenant
        and since >= 0
        and since < ACTIVE
        and expected * weights > limit.share_units * weight
        and expected > part_for(limit, weight, weights)
        and leaders[i + NAMED] ~= UNKNOWN
      then
        local used = later(part_of(leaders, i + NAMED, AGES), since)
        beyond[#beyond + 1] = { since = since, weight = weight, expected = expected, used = used }
      end
    end
    return beyond
  end

  -- The tenants with the highest expectation by weight, after one has asked.
  local function with_leader(leaders, newest, tenant, weight, expected, used)
    local others, last = {}, nil
    for i = 1, #leaders, VALUES do
      if leaders[i] ~= tenant and newest - leaders[i + 1] < ACTIVE then
        local at = #others
        for j = 1, VALUES do others[at + j] = leaders[i + j - 1] end
        if not last or others[at + 4] / others[at + 3] < others[last + 3] / others[last + 2] then last = at + 1 end
      end
    end
    local at = #others + 1
    if at > MOST_LEADERS * VALUES then
      if expected / weight <= others[last + 3] / others[last + 2] then return others end
      at = last
    end
    others[at], others[at + 1], others[at + 2], others[at + 3] = tenant, newest, weight, expected
    for age = 1, AGES do others[at + NAMED + age - 1] = used[age] end
    return others
  end

  -- Adds a tenant's part to the sums, or subtracts it.
  local function add_record(sums, record, sign)
    local by = sums.newest - record.newest
    if by >= ACTIVE then return end
    sums.weights[by + 1] = max(0, sums.weights[by + 1] + sign * record.weight)
    sums.expected[by + 1] = max(0, sums.expected[by + 1] + sign * record.expected)
    local left = record.expected
    -- The newest units first: if a tenant used more than expected, these still count when the older ones no longer do.
    for age = 1, AGES - by do
      local counted = min(left, record.used[age])
      left = left - counted
      sums.used[age + by] = max(0, sums.used[age + by] + sign * counted)
    end
  end

  local total, shared = algorithm, {}
  for name, value in pairs(algorithm) do shared[name] = value end
  shared.reuses_state, shared.debt_cleared_at, shared.can_owe = nil, nil, nil

  -- What was stored about a tenant before belongs to another epoch.
  local function begin_sums(limit, now, epoch)
    local zeros = {}
    for i = 1, ACTIVE do zeros[i] = 0 end
    return {
      epoch = epoch,
      newest = floor(now / limit.share_length),
      weights = zeros,
      expected = part_of(zeros, 1, ACTIVE),
      used = part_of(zeros, 1, AGES),
    }
  end

  -- The sums of the others, and the tenant's own slices.
  local function open_shares(limit, state, now)
    local length, current = limit.share_length, floor(now / limit.share_length)
    local values = redis.call('MGET', key_beside(state, ':shares'), key_beside(state, ':share:' .. limit.tenant))
    local stored, leaders = numbers_of(values[1], 3 + 2 * ACTIVE + AGES)
    local sums, own
    -- Unless the clock was set back, or the span has changed.
    if stored and stored[2] == length and stored[3] - current <= SLICES then
      sums = {
        epoch = stored[1],
        newest = stored[3],
        weights = part_of(stored, 4, ACTIVE),
        expected = part_of(stored, 4 + ACTIVE, ACTIVE),
        used = part_of(stored, 4 + 2 * ACTIVE, AGES),
      }
      own = numbers_of(values[2], 5 + 2 * AGES)
      if own and (own[1] ~= sums.epoch or own[2] > sums.newest) then own = nil end
    end
    state.leaders = sums and leaders or {}
    sums = sums or begin_sums(limit, now, stored and max(now, stored[1] + 1) or now)
    local by = max(0, current - sums.newest)
    local newest = sums.newest + by
    local record = { newest = sums.newest, weight = 0, expected = 0, used = {}, asked = {} }
    if own then
      record.newest, record.weight, record.expected = own[2], own[3], own[4]
    end
    record.used, record.asked = part_of(own or {}, 5, AGES), part_of(own or {}, 5 + AGES, AGES + 1)
    add_record(sums, record, -1)
    state.sums = {
      epoch = sums.epoch,
      newest = newest,
      weights = later(sums.weights, by),
      expected = later(sums.expected, by),
      used = later(sums.used, by),
    }
    local since = newest - record.newest
    state.own_used, state.own_asked = later(record.used, since), later(record.asked, since)
    state.beyond = beyond_parts(limit, state)
  end

  -- The tenant's part, the units it used, and those kept for others, `by` slices later.
  local function standing(limit, state, by)
    if by == 0 and state.part then return state.part, state.used, state.kept_for_others end
    local sums, ages, active = state.sums, AGES - by, ACTIVE - by
    local weights = limit.weight + total_of(sums.weights, 1, active)
    local units, quota = limit.share_units, limit.quota
    local part = part_for(limit, limit.weight, weights)
    -- Never so much that a tenant alone could not ask for its part of what is available at once.
    local most = quota - min(quota, units == quota and part or in_proportion(quota, limit.weight, weights))
    local claimed = total_of(sums.expected, 1, active) - total_of(sums.used, 1, ages)
    for _, other in ipairs(state.beyond) do
      if other.since < active then
        local left = other.expected - total_of(other.used, 1, ages)
        local least = min(other.expected, part_for(limit, other.weight, weights))
        claimed = claimed - max(0, left) + max(0, left - other.expected + least)
      end
    end
    local kept = max(0, min(claimed, most))
    local used = total_of(state.own_used, 1, ages)
    -- The sums of others do not change before the state is saved.
    if by == 0 then state.part, state.used, state.kept_for_others = part, used, kept end
    return part, used, kept
  end

  -- Units that must be free for a request to fit. A tenant that has used nothing may ask for more than its part at once.
  local function needed(limit, state, by, cost)
    local part, used, kept = standing(limit, state, by)
    if used == 0 or used + cost <= part then return cost end
    return cost + kept
  end

  local function ask(limit, state, cost, taken)
    if not state.sums then return false end
    state.own_used[1] = state.own_used[1] + taken
    if state.part then state.used = state.used + taken end
    state.own_asked[1] = min(limit.share_units, state.own_asked[1] + cost)
    state.asked_now = true
    return true
  end

  -- The newest units first, but none that no longer count.
  local function give_back(limit, state, units, charged_at)
    local used, asked = state.own_used, state.own_asked
    if charged_at >= 0 and state.sums.newest - floor(charged_at / limit.share_length) > SLICES then return end
    state.asked_now, state.part = true, nil
    for age = 1, AGES do
      local given = min(units, used[age])
      used[age], asked[age] = used[age] - given, max(0, asked[age] - given)
      units = units - given
    end
  end

  local function whole_millis(micros) return ceil(micros / 1000) * 1000 end

  shared.open = function(limit, stored, now, key, state)
    local of_another_time = total.open(limit, stored, now, key, state)
    state.sums, state.asked_now, state.part = nil, false, nil
    if limit.tenant ~= '' then open_shares(limit, state, now) end
    return of_another_time
  end

  shared.fits = function(limit, state, cost)
    if not total.fits(limit, state, cost) then return false end
    if not state.sums then return true end
    return total.fits(limit, state, needed(limit, state, 0, cost))
  end

  shared.take = function(limit, state, cost)
    total.take(limit, state, cost)
    ask(limit, state, cost, cost)
  end

  shared.refuse = function(limit, state, cost) return ask(limit, state, cost, 0) end

  shared.give = function(limit, state, units, ticket, charged_at)
    total.give(limit, state, units, ticket, charged_at)
    if state.sums then give_back(limit, state, units, charged_at) end
  end

  shared.remaining_for_all = total.remaining

  shared.remaining = function(limit, state)
    local left = total.remaining(limit, state)
    if not state.sums then return left end
    local part, used, kept = standing(limit, state, 0)
    if used == 0 then return left end
    return max(min(left, part - used), left - kept)
  end

  shared.retry_after = function(limit, state, cost)
    if not state.sums then return total.retry_after(limit, state, cost) end
    local length, newest, now = limit.share_length, state.sums.newest, state.now
    for by = 0, ACTIVE - 1 do
      local units = needed(limit, state, by, cost)
      if units <= limit.quota then
        local begins = by == 0 and 0 or (newest + by) * length - now
        local wait = total.fits(limit, state, units) and 0 or total.retry_after(limit, state, units)
        local millis = whole_millis(max(begins, wait))
        if millis < (newest + by + 1) * length - now then return millis end
      end
    end
    local rest = total.fits(limit, state, cost) and 0 or total.retry_after(limit, state, cost)
    return whole_millis(max((newest + ACTIVE) * length - now, rest))
  end

  local save_total = algorithm.save

  shared.save = function(limit, state, key)
    if save_total then save_total(limit, state, key) end
    if not state.sums or not state.asked_now then return end
    local sums, used, asked = state.sums, state.own_used, state.own_asked
    local part, between = standing(limit, state, 0), total_of(asked, 2, AGES)
    local expected = min(part, between + max(asked[1], asked[AGES + 1]))
    add_record(sums, { newest = sums.newest, weight = limit.weight, expected = expected, used = used }, 1)
    local numbers = { sums.epoch, limit.share_length, sums.newest }
    for _, counts in ipairs({ sums.weights, sums.expected, sums.used }) do
      for i = 1, #counts do numbers[#numbers + 1] = counts[i] end
    end
    local record = { sums.epoch, sums.newest, limit.weight, expected }
    for _, counts in ipairs({ used, asked }) do
      for i = 1, #counts do record[#record + 1] = counts[i] end
    end
    local lives = time_to_live((ACTIVE + 1) * limit.share_length)
    local leaders = with_leader(state.leaders, sums.newest, limit.tenant, limit.weight, expected, used)
    redis.call('SET', key_beside(state, ':shares'), cmsgpack.pack(numbers, parted(leaders)), 'PX', lives)
    redis.call('SET', key_beside(state, ':share:' .. limit.tenant), cmsgpack.pack(record), 'PX', lives)
  end

  return shared
end

return feature
