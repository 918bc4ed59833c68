-- What an upstream reported about the limit that a counter follows. It only ever tightens: units are charged, or a block is begun
-- or extended. Units that were charged for calls in flight are given back once fewer are. Beside the counter, a key of its own
-- holds a note of doubles: the tag and the end of the upstream's window, the least that was left in it, how many units were
-- charged for it, and when; after when the window surely ends, the most that was left in it, when an answer last reported it, and
-- when a call was last let through to find out; the upstream's quota, or 0; then for each instance its number, the units that it has
-- in flight, and when it reported that. Notes of earlier releases have the first five or nine.
--
-- Uses: learns_or_claims, now, set_block, time_to_live, values
-- Leaves: learn

local learn

if learns_or_claims then
  -- An instance that has not reported for this long is gone, or its calls have arrived; so have those of a window that is over.
  local FLIGHT = 60000000
  -- The most instances to note.
  local MOST_FLIGHTS = 256
  -- Times reported in whole seconds were rounded up by less than this.
  local SECOND = 1000000
  -- One unit in this many is left to other consumers, which nobody reports: they may ask while a window's last calls are in
  -- flight.
  local LEFT_TO_OTHERS = 50
  -- If less than this part of a window is left, and there was no report for a second, one call at a time finds out.
  local FEW = 4

  -- Any key may hold something else.
  local function is_number(value) return value > -MAX_OWED and value < MAX_OWED end

  local function read_note(value)
    local note = { tag = -1, window_end = 0, least = 0, charged = 0, charged_at = 0 }
    note.ends_after, note.most, note.reported_at, note.probed_at, note.quota = 0, 0, 0, 0, 0
    local rest = value and #value % 24
    local size = rest == 16 and 40 or rest == 0 and 72 or 80
    if not value or #value < size or (#value - size) % 24 ~= 0 then return note end
    local tag, window_end, least, charged, charged_at = unpack_doubles('<ddddd', value)
    if not (is_number(tag) and is_number(window_end) and is_number(least) and is_number(charged)) then return note end
    note.charged, note.charged_at = charged, charged_at
    if now - window_end < FLIGHT then
      note.tag, note.window_end, note.least = tag, window_end, least
      if size >= 72 then
        local ends_after, most, reported_at, probed_at = unpack_doubles('<dddd', value, 41)
        note.ends_after, note.most, note.reported_at, note.probed_at = ends_after, most, min(reported_at, now), min(probed_at, now)
      end
      if size == 80 then
        local quota = unpack_doubles('<d', value, 73)
        if is_number(quota) then note.quota = quota end
      end
    end
    for at = size + 1, #value, 24 do
      local instance, units, reported = unpack_doubles('<ddd', value, at)
      if now - reported < FLIGHT and is_number(units) then note[#note + 1] = { instance, units, min(reported, now) } end
    end
    return note
  end

  -- What is charged is kept as long as it counts: nobody else would give it back.
  local function write_note(limit, state, note, number)
    if note.tag < 0 and #note == 0 and note.charged == 0 then
      if values[number] then redis.call('DEL', KEYS[number]) end
      values[number] = false
      return
    end
    local parts = {
      pack('<ddddd', note.tag, note.window_end, note.least, note.charged, note.charged_at)
        .. pack('<ddddd', note.ends_after, note.most, note.reported_at, note.probed_at, note.quota),
    }
    for i, flight in ipairs(note) do parts[i + 1] = pack('<ddd', flight[1], flight[2], flight[3]) end
    values[number] = table.concat(parts)
    local keep = max(note.window_end - now, 0) + FLIGHT
    if note.charged > 0 then keep = max(keep, limit.algorithm.reset_after(limit, state)) end
    redis.call('SET', KEYS[number], values[number], 'PX', time_to_live(keep))
  end

  -- Records what an instance has in flight and is about to ask for; returns the total of all instances.
  local function note_flight(note, instance, units, asking)
    for i = #note, 1, -1 do
      if note[i][1] == instance then table.remove(note, i) end
    end
    if units + asking > 0 then note[#note + 1] = { instance, units + asking, now } end
    while #note > MOST_FLIGHTS do table.remove(note, 1) end
    local sum = -asking
    for _, flight in ipairs(note) do sum = sum + flight[2] end
    return sum
  end

  -- Whether an answer may be about a window that is over. The call was sent `age` microseconds ago.
  local function is_late(note, reset, age, tag)
    if reset >= 0 and reset <= age then return true end
    return tag >= 0 and note.tag == tag and note.window_end <= now and now - age < note.window_end
  end

  -- Takes over what is left of a window, and when it ends. Each answer narrows down a time reported in whole seconds, and the
  -- order of answers does not matter. An answer whose window surely ends later is about the next one, which has begun: the end
  -- was reported up to a second late. One whose window surely ended before is ignored.
  local function follow_window(note, remaining, reset, age, tag, quota)
    local first, last = now - age + reset - SECOND, now + reset
    local runs = note.tag == tag and note.window_end > now
    if runs and last <= note.ends_after then return end
    local is_same = runs and first < note.window_end
    note.tag, note.quota = tag, quota > 0 and max(quota, remaining) or 0
    note.window_end = is_same and min(note.window_end, last) or last
    note.ends_after = is_same and max(note.ends_after, first) or first
    note.least = is_same and min(note.least, remaining) or remaining
    note.most = is_same and max(note.most, remaining) or remaining
    note.reported_at = now
  end

  -- Whether others may have taken what seems to be left.
  local function is_stale(note)
    return note.least * FEW < note.most and now - note.reported_at > SECOND
  end

  -- What is left in the window for calls in flight and others. While there are none, all of it may be asked for.
  local function room_of(note)
    return #note == 0 and note.least or note.least - floor(note.most / LEFT_TO_OTHERS)
  end

  -- Charges the excess over the room that the upstream has.
  local function charge_excess(limit, state, room)
    local excess = limit.algorithm.remaining(limit, state) - room
    if excess <= 0 then return 0 end
    limit.algorithm.take(limit, state, excess)
    return excess
  end

  -- Returns whether the counter was changed. `tag` distinguishes windows of different limits, and is -1 if units come back
  -- gradually; `remaining`, `reset`, `block` and `quota` are -1 if unknown.
  function learn(limit, state, number, remaining, reset, age, tag, units, instance, block, asking, quota)
    local note, algorithm, changed = read_note(values[number]), limit.algorithm, false
    local flying, block_until = note_flight(note, instance, units, asking), block > 0 and now + block or 0
    local is_told = remaining >= 0 and not is_late(note, reset, age, tag)
    if is_told and tag >= 0 and reset >= 0 then
      follow_window(note, remaining, reset, age, tag, quota)
      is_told = false
    end
    local before = algorithm.remaining(limit, state)
    -- Charges anew what was charged for the upstream's window, by what is known now. Places in a queue are already promised, and
    -- stay.
    if note.charged > 0 and not algorithm.delay then
      algorithm.give(limit, state, note.charged, -1, note.charged_at)
      changed = true
    end
    note.charged = 0
    local runs = note.window_end > now
    if runs and note.least == 0 then
      -- A block ends with the upstream's window, while charged units would end with the limit's own.
      block_until = max(block_until, note.window_end)
    elseif (runs or is_told or note.quota > 0) and not algorithm.renew then
      -- The window that follows has at most the quota. Which one that is shows the first answer.
      local room = max(0, (is_told and remaining or runs and room_of(note) or note.quota) - flying)
      if not is_told and runs and is_stale(note) then
        local probes = asking > 0 and asking <= algorithm.remaining(limit, state) and now - note.probed_at >= SECOND
        if probes then note.probed_at = now end
        room = min(room, probes and asking or before)
      end
      local excess = charge_excess(limit, state, room)
      if excess > 0 then changed = true end
      if not is_told then note.charged, note.charged_at = excess, now end
    end
    if block_until > max(now, state.blocked_until or 0) then
      set_block(state, block_until - now, state.envelope and state.envelope.offences)
      changed = true
    end
    write_note(limit, state, note, number)
    return changed
  end
end
