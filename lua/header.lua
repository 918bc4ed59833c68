-- Decides any number of checks, each against any number of limits, in one atomic call.
--
-- KEYS     every key that the call touches, all of one Cluster slot
-- ARGV[1]  the program, a flat JSON array:
--            now      0 for the server's clock; else the time in microseconds (tests)
--            slack    milliseconds added to every time to live (tests)
--            limits   their number, then each limit's
--                       algorithm, shadow (0 or 1), quota, number of parameters, parameters
--            checks   until the end, each check's
--                       operation, number of entries, entries; an entry is
--                       the number of its limit, the number of its key, and what the operation needs
--          operations: 0 consume and 1 peek (cost), 2 refund (units, place or -1), 3 history (nothing)
-- Reply    a flat array of whole numbers; times are milliseconds, rounded up. An entry of 0 and 1 replies
--            reset * 4 + 1, remaining                 allowed
--            reset * 4 + 2, remaining, delay, place   allowed, to be held
--            reset * 4,     remaining, wait           refused; a wait of -1 never ends
--          a check whose calendar window is not the one of the server's clock replies
--            -1, now                                  not decided, to be asked again
--          2 replies nothing; 3 replies the number of windows, then start, end, count of each, the newest last
--
-- A refused check writes nothing, unless a state was made under other parameters or the clock was set back by an
-- interval or more: then the translated state is kept, so that its waits do not start anew.
--
-- A fragment in algorithms/ adds one table to `algorithms`:
--   open(p, raw, now, key)  the state as of now: a table with `now` and `moved`, or nil if p is of another time
--   fits(p, s, cost)        whether cost <= quota fits
--   take(p, s, cost)        charges what fits
--   give(p, s, units, place)
--   remaining(p, s)         whole units
--   retry(p, s, cost)       microseconds until a cost fits that does not
--   reset(p, s)             microseconds until the state equals a fresh one
--   delay(p, s, cost)       microseconds to hold what fits, and its place; optional
--   save(p, s, key)         writes the state
--   history(p, s, key)      optional
-- where p holds the limit's parameters by position, and `quota`.

local algorithms = {}
local time_to_live_slack

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local pack, unpack_doubles = struct.pack, struct.unpack

-- Stores a value, or a fresh state by deleting it. A key lives as long as its state differs from a fresh one.
local function put(key, value, keep_for)
  if keep_for > 0 then
    redis.call('SET', key, value, 'PX', ceil(keep_for / 1000) + time_to_live_slack)
  else
    redis.call('DEL', key)
  end
end
