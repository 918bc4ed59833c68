-- What an upstream said of the limit that a counter follows. It only ever tightens: units are charged, or a block is begun or made
-- longer. Beside the counter, in a key of its own, stands a note, made of doubles: the tag and the end of the upstream's window, then
-- of each instance its number, the units that it has in flight, and when it told so.
--
-- Uses: now, set_block, time_to_live, values
-- Leaves: learn

-- An instance that tells nothing for so long has gone, or its calls have arrived; and so have those of a window that is over.
local FLIGHT = 60000000
-- More instances than these are not noted.
local MOST_FLIGHTS = 256

local function read_note(value)
  local note = { tag = -1, window_end = 0 }
  if not value or #value % 24 ~= 16 then return note end
  note.tag, note.window_end = unpack_doubles('<dd', value)
  if now - note.window_end >= FLIGHT then note.tag, note.window_end = -1, 0 end
  for at = 17, #value, 24 do
    local instance, units, told = unpack_doubles('<ddd', value, at)
    if now - told < FLIGHT then note[#note + 1] = { instance, units, min(told, now) } end
  end
  return note
end

local function write_note(note, number)
  if note.tag < 0 and #note == 0 then
    if values[number] then redis.call('DEL', KEYS[number]) end
    values[number] = false
    return
  end
  local parts = { pack('<dd', note.tag, note.window_end) }
  for i, flight in ipairs(note) do parts[i + 1] = pack('<ddd', flight[1], flight[2], flight[3]) end
  values[number] = table.concat(parts)
  redis.call('SET', KEYS[number], values[number], 'PX', time_to_live(max(note.window_end - now, 0) + FLIGHT))
end

-- Notes what an instance has in flight, and tells how much all of them have.
local function note_flight(note, instance, units)
  for i = #note, 1, -1 do
    if note[i][1] == instance then table.remove(note, i) end
  end
  if units > 0 then note[#note + 1] = { instance, units, now } end
  while #note > MOST_FLIGHTS do table.remove(note, 1) end
  local sum = 0
  for _, flight in ipairs(note) do sum = sum + flight[2] end
  return sum
end

-- Whether an answer may be of a window that is over. `age` microseconds ago the call was sent.
local function is_late(note, reset, age, tag)
  if reset >= 0 and reset <= age then return true end
  return tag >= 0 and note.tag == tag and note.window_end <= now and now - age < note.window_end
end

-- Says whether the counter was changed. `tag` tells windows of different limits apart, -1 where units come back little by little;
-- `remaining`, `reset` and `block` are -1 where nothing is known.
local function learn(limit, state, number, remaining, reset, age, tag, units, instance, block)
  local note, algorithm, changed = read_note(values[number]), limit.algorithm, false
  local flying, block_until = note_flight(note, instance, units), block > 0 and now + block or 0
  if remaining >= 0 and not is_late(note, reset, age, tag) then
    local room, windowed = max(0, remaining - flying), tag >= 0 and reset >= 0
    if windowed then
      -- What is told in whole seconds is narrowed down by each answer.
      local runs = note.tag == tag and note.window_end > now
      note.tag, note.window_end = tag, runs and min(note.window_end, now + reset) or now + reset
    end
    local excess = not algorithm.renew and algorithm.remaining(limit, state) - room or 0
    if windowed and remaining == 0 then
      -- A block ends with the upstream's window, and units that were charged would end with the limit's own.
      block_until = max(block_until, note.window_end)
    elseif excess > 0 then
      algorithm.take(limit, state, excess)
      changed = true
    end
  end
  if block_until > max(now, state.blocked_until or 0) then
    set_block(state, block_until - now, state.envelope and state.envelope.offences)
    changed = true
  end
  write_note(note, number)
  return changed
end
