-- The checks that the fast way has left to the general one: makes them a program of that one, and fills in their replies.
--
-- Uses: gaps, now, program, reply, settings, size
-- Leaves: filled, gap_ends

-- The end of the reply of each check; those of the fast way end first.
local plain_size, gap_ends = size, {}

local function program_of_gaps()
  local written, open, uses, numbers, limits = { 0, now, settings and settings[2] or 1000, 0 }, {}, {}, {}, 0
  local function write(...)
    for _, value in ipairs({ ... }) do written[#written + 1] = value end
  end
  -- Each limit is written once: its numbers, by what it is written in and where.
  local function number_of(source, at)
    local known = numbers[source] or {}
    numbers[source] = known
    if not known[at] then
      limits = limits + 1
      known[at] = limits
      local name, quota, shadow, first, count = source[at], source[at + 1], source[at + 2], at + 4, source[at + 3]
      if source[1] == 1 then shadow, first, count = 0, at + 3, #source - 5 end
      write(name, shadow, quota, 0, 0, 0, count)
      for parameter = first, first + count - 1 do write(source[parameter]) end
    end
    return known[at]
  end
  for _, gap in ipairs(gaps) do
    for i, at in ipairs(gap.limits) do gap.limits[i] = number_of(gap.source, at) end
    for _, number in ipairs(gap.keys) do
      uses[number] = (uses[number] or 0) + gap.times
      if uses[number] > 1 and uses[number] - gap.times <= 1 then open[#open + 1] = number end
    end
  end
  written[4] = limits
  write(#open, unpack(open))
  -- Plain counters have no further keys here.
  write(0)
  for _, gap in ipairs(gaps) do
    for _ = 1, gap.times do
      write(gap.operation, #gap.keys)
      for i, number in ipairs(gap.keys) do write(gap.limits[i], number, gap.costs[i]) end
    end
  end
  return written
end

if gaps then program = program_of_gaps() end

local function filled()
  local whole, at, from, done = {}, 0, plain_size, 0
  local function copy(first, last)
    for i = first, last do whole[#whole + 1] = reply[i] end
  end
  for _, gap in ipairs(gaps) do
    copy(at + 1, gap.at)
    done = done + gap.times
    copy(from + 1, gap_ends[done])
    at, from = gap.at, gap_ends[done]
  end
  copy(at + 1, plain_size)
  return whole
end
