-- What may stand around a counter's value: its block, and the quota that its units are for. A state holds it as `envelope`, which has
-- `carried_to` and what block.lua says.
--
-- Uses: BLOCKED, NO_CARRY, open_block, packed_block, time_to_live
-- Leaves: unwrap, wrap, write_wrapped

local CARRIED = 254

-- Whether a value begins with a mark. The first byte of a number may be any, so its length tells: that of a plain value is
-- always the same, or 8 divides it, and it does not that of a marked one.
local function is_marked(value, mark, algorithm)
  if string.byte(value) ~= mark then return false end
  if algorithm.encoded_size then return #value ~= algorithm.encoded_size end
  return algorithm.packed or #value % 8 > 0
end

-- The value itself, and what stands before it.
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

-- A limit that carries over leaves its mark on each value that it writes.
local function wrap(limit, state, blocked_until, blocked_for, carried_to)
  if not blocked_until and not carried_to and limit.carry == NO_CARRY then return end
  local envelope = { carried_to = carried_to }
  state.envelope = envelope
  if blocked_until then open_block(limit, state, envelope, blocked_until, blocked_for) end
end

-- Stores a value with its envelope, which a block keeps alive when the value is fresh.
local function put(key, block, carried, value, keep_for, block_for)
  if keep_for > 0 then
    redis.call('SET', key, block .. carried .. value, 'PX', time_to_live(max(keep_for, block_for)))
  elseif block_for > 0 then
    redis.call('SET', key, block, 'PX', time_to_live(block_for))
  else
    redis.call('DEL', key)
  end
end

-- Writes a counter with its envelope; where it keeps no string, the envelope only.
local function write_wrapped(limit, state, keep_for)
  local algorithm, envelope, number = limit.algorithm, state.envelope, state.number
  local carried, block, block_for = '', packed_block(limit, state)
  -- What was carried over is not carried over again, whoever charges it meanwhile.
  local carried_to = limit.carry ~= NO_CARRY and limit.quota or envelope.carried_to
  if carried_to then carried = string.char(CARRIED) .. pack('<d', carried_to) end
  if not algorithm.own_type then
    put(KEYS[number], block, carried, keep_for > 0 and algorithm.encode(limit, state), keep_for, block_for)
  elseif carried ~= '' then
    put(KEYS[number + 1], block, carried, '', keep_for, block_for)
  elseif envelope.changed then
    put(KEYS[number + 1], block, '', '', 0, block_for)
  end
end
