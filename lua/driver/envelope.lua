-- What may stand around a counter's value: its block, and the quota that its units are for. A state that is blocked holds
-- `blocked_until`. Its envelope holds `carried_to`; `blocked_for`; `offences`, if there were any; `ended_at` if the block is over and
-- kept for these; and `changed` if the block is not the stored one.
--
-- Uses: NO_CARRY, now, time_to_live
-- Leaves: unwrap, wrap, write_wrapped

local BLOCKED, CARRIED = 255, 254

-- Whether a value begins with a mark. The first byte of a number may be anything, so the length decides: that of a plain value is
-- constant or divisible by 8, and that of a marked one is not.
local function is_marked(value, mark, algorithm)
  if string.byte(value) ~= mark then return false end
  if algorithm.encoded_size then return #value ~= algorithm.encoded_size end
  return algorithm.packed or #value % 8 > 0
end

-- The value itself, and what is before it.
local function unwrap(value, algorithm)
  local blocked_until, blocked_for, carried_to
  if is_marked(value, BLOCKED, algorithm) then
    if #value < 17 then return nil end
    blocked_until, blocked_for = unpack_doubles('<dd', value, 2)
    value = string.sub(value, 18)
  end
  if is_marked(value, CARRIED, algorithm) then
    if #value < 9 then return nil end
    carried_to = unpack_doubles('<d', value, 2)
    value = string.sub(value, 10)
  end
  return value ~= '' and value, blocked_until, blocked_for, carried_to
end

-- A limit that carries over marks each value that it writes. Offences are 256ths in the fraction of a block's length, which is 0
-- for a block that is over.
local function wrap(limit, state, blocked_until, length, carried_to)
  if not blocked_until and not carried_to and limit.carry == NO_CARRY then return end
  local envelope = { carried_to = carried_to }
  state.envelope = envelope
  if not blocked_until then return end
  local offences, blocked_for, counts = 0, length, false
  if length % 1 > 0 then
    offences, blocked_for = floor(length % 1 * 256), floor(length)
    counts = limit.steps and offences > 0
    if counts then envelope.offences = offences end
  end
  if blocked_until > now and blocked_for > 0 then
    -- If the clock was set back, the block ends no later than if it had just begun.
    state.blocked_until, envelope.blocked_for = min(blocked_until, now + blocked_for), blocked_for
    if state.blocked_until < blocked_until then state.migrated, envelope.changed = true, true end
    if offences > 0 and not counts then envelope.changed = true end
  elseif counts and now < blocked_until + limit.forget_after then
    -- It stays over even if the clock is set back again; and if that happened, it counts as having just ended.
    envelope.ended_at, envelope.changed = min(blocked_until, now), blocked_until > now or blocked_for > 0
    if blocked_until > now then state.migrated = true end
  else
    -- What is stored next no longer has the block, which is over.
    envelope.offences, envelope.changed = nil, true
  end
end

-- Stores a value with its envelope; the block keeps it alive when the value is fresh.
local function put(key, block, carried, value, keep_for, block_for)
  if keep_for > 0 then
    redis.call('SET', key, block .. carried .. value, 'PX', time_to_live(max(keep_for, block_for)))
  elseif block_for > 0 then
    redis.call('SET', key, block, 'PX', time_to_live(block_for))
  else
    redis.call('DEL', key)
  end
end

-- Writes a counter with its envelope; only the envelope if it keeps no string.
local function write_wrapped(limit, state, keep_for)
  local algorithm, envelope, number = limit.algorithm, state.envelope, state.number
  local block, carried, block_for = '', '', 0
  local ends = state.blocked_until or envelope.ended_at
  if ends then
    local length = state.blocked_until and envelope.blocked_for or 0
    block_for = ends - now
    if envelope.offences then length, block_for = length + envelope.offences / 256, block_for + limit.forget_after end
    block = string.char(BLOCKED) .. pack('<dd', ends, length)
  end
  -- What was carried over is not carried over again, whoever charges it meanwhile.
  local carried_to = limit.carry ~= NO_CARRY and (limit.whole or limit.quota) or envelope.carried_to
  if carried_to then carried = string.char(CARRIED) .. pack('<d', carried_to) end
  if not algorithm.own_type then
    put(KEYS[number], block, carried, keep_for > 0 and algorithm.encode(limit, state), keep_for, block_for)
  elseif carried ~= '' then
    put(KEYS[number + 1], block, carried, '', keep_for, block_for)
  elseif envelope.changed then
    put(KEYS[number + 1], block, '', '', 0, block_for)
  end
end
