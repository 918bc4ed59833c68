-- The units that were charged by the days of a time zone, of limits with `usage`. The record of a counter is a list of the start of each
-- day in seconds and its units, the newest last; and beside the records of a slot stands the sorted set of the keys that have one, by the
-- start of the newest day.
--
-- keep, day_start, day_end, most_keys: microseconds for which a day is kept after its end; when the day began that holds now by the caller's
-- time zone, and ends; the most keys of an index that have a record, 0 for no bound
-- A counter has the numbers of the keys of its record and of the index, and what stands for it there.
--
-- Uses: as_text, ask, now, time_to_live

-- No day is longer: seconds.
local LONGEST_DAY = 26 * 3600
-- How many days a refund reads at once if the time of its charge is not known.
local PAGE = 8
-- How many values a command takes at once.
local MOST_AT_ONCE = 1000

local function clamped(units) return as_text(max(0, min(units, MAX_OWED))) end

local function start_of(key, day) return tonumber(redis.call('LINDEX', key, as_text(2 * day))) end

-- The last day that began at a time or before it, counted from 0; -1 if none did.
local function last_day_at(key, second)
  local low, high = 0, floor(ask('LLEN', key) / 2)
  while low < high do
    local middle = floor((low + high) / 2)
    if start_of(key, middle) > second then high = middle else low = middle + 1 end
  end
  return low - 1
end

local function keep(key, micros)
  local text = time_to_live(micros)
  if tonumber(text) > redis.call('PTTL', key) then redis.call('PEXPIRE', key, text) end
end

-- Whether a key that has no record yet is one too many. Then an empty member of the index says that keys were left out.
local function is_too_many(terms, index, member, today)
  if terms.most_keys == 0 then return false end
  ask('ZREMRANGEBYSCORE', index, '-inf', as_text(floor((now - terms.keep) / 1000000) - LONGEST_DAY))
  if redis.call('ZSCORE', index, member) then return false end
  local left_out = redis.call('ZSCORE', index, '') and 1 or 0
  if redis.call('ZCOUNT', index, '-inf', '+inf') - left_out < terms.most_keys then return false end
  redis.call('ZADD', index, as_text(today), '')
  keep(index, (today + LONGEST_DAY) * 1000000 + terms.keep - now)
  return true
end

-- Adds a day, between the others if the clock was set back.
local function add_day(terms, key, index, member, today, units)
  local at = last_day_at(key, today)
  local later = redis.call('LRANGE', key, as_text(2 * at + 2), '-1')
  if #later > 0 then
    if at < 0 then redis.call('DEL', key) else redis.call('LTRIM', key, '0', as_text(2 * at + 1)) end
  end
  redis.call('RPUSH', key, as_text(today), clamped(units))
  for from = 1, #later, MOST_AT_ONCE do
    redis.call('RPUSH', key, unpack(later, from, min(#later, from + MOST_AT_ONCE - 1)))
  end
  local old = floor((now - terms.keep) / 1000000) - LONGEST_DAY
  if start_of(key, 0) <= old then redis.call('LTRIM', key, as_text(2 * last_day_at(key, old) + 2), '-1') end
  local newest = #later > 0 and tonumber(later[#later - 1]) or today
  local lives = (newest + LONGEST_DAY) * 1000000 + terms.keep - now
  keep(key, lives)
  ask('ZADD', index, as_text(newest), member)
  redis.call('ZREMRANGEBYSCORE', index, '-inf', as_text(old))
  keep(index, lives)
end

local function charge_today(terms, key, index, member, units)
  local today = floor(terms.day_start / 1000000)
  local newest = ask('LRANGE', key, '-2', '-1')
  local start = tonumber(newest[1])
  if start == today then
    redis.call('LSET', key, '-1', clamped(newest[2] + units))
    return
  end
  if not start and is_too_many(terms, index, member, today) then return end
  local at = start and start > today and last_day_at(key, today) or -1
  if at >= 0 and start_of(key, at) == today then
    local place = as_text(2 * at + 1)
    redis.call('LSET', key, place, clamped(redis.call('LINDEX', key, place) + units))
  else
    add_day(terms, key, index, member, today, units)
  end
end

local function correct_day(key, charged_at, difference)
  local second = floor(charged_at / 1000000)
  local at = last_day_at(key, second)
  if at < 0 or second >= start_of(key, at) + LONGEST_DAY then return end
  local place = as_text(2 * at + 1)
  redis.call('LSET', key, place, clamped(redis.call('LINDEX', key, place) + difference))
end

-- Off the newest days that have any, as far back as there are days.
local function give_back(key, units)
  local first = floor(ask('LLEN', key) / 2)
  while units > 0 and first > 0 do
    local last = first - 1
    first = max(0, first - PAGE)
    local days = redis.call('LRANGE', key, as_text(2 * first), as_text(2 * last + 1))
    for i = #days, 2, -2 do
      local given = min(units, tonumber(days[i]))
      if given > 0 then redis.call('LSET', key, as_text(2 * first + i - 1), as_text(days[i] - given)) end
      units = units - given
    end
  end
end

return {
  parameters = { 'keep', 'day_start', 'day_end', 'most_keys' },

  is_of_another_time = function(terms) return now < terms.day_start or now >= terms.day_end end,

  charged = function(terms, beside, units) charge_today(terms, KEYS[beside[1]], KEYS[beside[2]], beside[3], units) end,

  corrected = function(_, beside, difference, charged_at)
    local key = KEYS[beside[1]]
    if charged_at < 0 then give_back(key, -difference) else correct_day(key, charged_at, difference) end
  end,
}
