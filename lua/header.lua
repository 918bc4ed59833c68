-- Decides any number of checks, each against any number of limits, in one atomic call.
--
-- KEYS     every key that the call touches, all of one Cluster slot
-- ARGV[1]  the program, a flat JSON array:
--            now      0 for the server's clock; else the time in microseconds (tests)
--            slack    milliseconds added to every time to live (tests)
--            limits   their number, then each limit's
--                       algorithm, shadow (0 or 1), quota, microseconds to block whom it refuses (0: not at all),
--                       what becomes of the units that were left under a smaller quota (0: the algorithm says so itself,
--                       1: they grow with the quota, 2: by what it grew), the quota before the last change,
--                       number of parameters, parameters
--            checks   until the end, each check's
--                       operation, number of entries, entries; an entry is
--                       the number of its limit, the number of its key, and what the operation needs
--          operations: 0 consume, 1 peek and 8 consume what may be given back (cost), 4 reserve (cost, the longest wait in
--            microseconds), each of any number of entries; and of one entry with three numbers, 2 refund (units, place or
--            -1, when they were charged or -1), 3 history (unused), 5 penalize (units), 6 block (microseconds, 0 to unblock),
--            7 renew (units, place). 9 stands for many checks of 0 with the same limits and costs, whose keys follow each other: the
--            number of entries of a check, the number of checks, the number of the first key, what to add to it from check to
--            check, then the number of the limit and the cost of each entry
-- Reply    a flat array of whole numbers; times are milliseconds, rounded up. An entry of 0, 1, 4, 8 and 9 replies
--            reset * 4 + 1, remaining                 allowed
--            reset * 4 + 2, remaining, delay, place   allowed, to be held
--            reset * 4,     remaining, wait           refused; a wait of -1 never ends
--          4 and 8 reply the time at last
--          an operation whose calendar window is not the one of the server's clock replies
--            -1, now                                  not decided, to be asked again
--          2, 5 and 6 reply 1; 7 replies 1, or 0 if nothing is held any more; 3 replies the number of windows, then start, end, count of each, the newest last
--
-- A refused check writes nothing, unless a state was made under other parameters or the clock was set back by an
-- interval or more: then the translated state is kept, so that its waits do not start anew. A limit that blocks whom it
-- refuses writes down until when and forgets what was used, except of a reservation, which can be tried again. Where other
-- parameters may have given a counter less time to live than its wait takes, a refusal gives it more, and leaves its value.
--
-- A counter that is blocked is stored as the byte 255, two doubles (until when; for how long), and its value; one whose
-- units were carried over from another quota, as the byte 254, a double (the quota that they are for), and its value. No
-- other value can be taken for these: one that always has its algorithm's length has 17, 9 or 26 bytes more with them, one of
-- doubles has a length that 8 divides without them only, and a MessagePack array begins with neither byte. An algorithm that keeps no string keeps these in a key of its own, which
-- follows the counter's in KEYS.
--
-- A fragment in algorithms/ adds one function to `algorithms` that makes a table:
--   open(p, raw, now, key, spare)  the state as of now: a table with `now` and `moved`, which may be `spare`, an earlier one of
--                           the same limit that nobody needs any more; or nil if p is of another time
--   fits(p, s, cost)        whether cost <= quota fits
--   take(p, s, cost)        charges what fits
--   give(p, s, units, place, at)   gives units back, but none of those that count no longer by now
--   remaining(p, s)         whole units; less than none if more was charged than fits
--   retry(p, s, cost)       microseconds until a cost fits that does not
--   covered(p, s)           the tick at which nothing is owed to the future; where units can be reserved
--   owable(p, s, cost)      whether so much can be owed; where units can be reserved
--   scale_used(p, s, to, from)   has as large a part of the quota `to` used as was used of `from`; in whole units unless given
--   reset(p, s)             microseconds until the state equals a fresh one
--   delay(p, s, cost)       microseconds to hold what fits, and its place; optional
--   save(p, s, key)         writes the state
--   history(p, s, key)      start, end, count of windows, the newest last; optional
--   renew(p, s, units, place)   whether what is held is held anew; optional
--   lives(p, s)             microseconds for which what is stored has to be kept, where that depends on parameters; optional
--   apart                   true if it keeps no string
--   packed                  true if its value is a MessagePack array; else it has a size, or is made of doubles
--   raw(p, s)               its value, if it has a size and save writes nothing else, for as long as reset says
--   size                    the length of its value in bytes, if that never changes; a value of another length is none
-- where p holds the limit's parameters by position, and `quota`.

local algorithms = {}
local time_to_live_slack

-- The most that can be owed: above it a weight is no whole number any more.
local MAX_OWED = 2 ^ 53 - 1

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local pack, unpack_doubles = struct.pack, struct.unpack

-- amount x to / from, rounded up. Whole numbers below 2^53 give exactly that wherever it is below 2^53, however large the
-- product in between; beyond, the nearest doubles.
local function in_proportion(amount, to, from)
  local part = math.fmod(amount, from)
  local whole = (amount - part) / from * to
  if part == 0 then return whole end
  -- Long division of part x to, bit by bit of `to`: no number in it is larger than the divisor.
  local quotient, rest, bit = 0, 0, 1
  local function add(more)
    if more >= from - rest then
      rest, quotient = rest - (from - more), quotient + 1
    else
      rest = rest + more
    end
  end
  while bit * 2 <= to do bit = bit * 2 end
  while bit >= 1 do
    quotient = quotient * 2
    add(rest)
    if floor(to / bit) % 2 == 1 then add(part) end
    bit = bit / 2
  end
  return whole + quotient + (rest > 0 and 1 or 0)
end

-- What stands before the value of the counter that is being stored, and how long its block lasts.
local block, carried, block_for = '', '', 0

-- A time to live as text, since Redis takes long to write a number that Lua gives it; many keys have the same.
local times_to_live = {}

local function time_to_live(micros)
  local millis = ceil(micros / 1000) + time_to_live_slack
  local text = times_to_live[millis]
  if not text then
    text = string.format('%.0f', millis)
    times_to_live[millis] = text
  end
  return text
end

-- Stores a value, or a fresh state by deleting it. A key lives as long as its state differs from a fresh one.
local function put(key, value, keep_for)
  if keep_for > 0 then
    if block_for > 0 or carried ~= '' then value = block .. carried .. value end
    redis.call('SET', key, value, 'PX', time_to_live(max(keep_for, block_for)))
  elseif block_for > 0 then
    redis.call('SET', key, block, 'PX', time_to_live(block_for))
  else
    redis.call('DEL', key)
  end
end
