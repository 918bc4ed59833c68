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
  -- Limits are numbered in the order of the kinds that they are of: how many come before each kind's, and its costs.
  local function write_limits(kind)
    local at, costs = 3, { before = limits }
    for i = 1, kind[1] do
      local name, quota, shadow, count = kind[at], kind[at + 1], 0, #kind - 5
      costs[i] = kind[at + 2]
      at = at + 3
      if kind.is_long then
        shadow, count = kind[at], kind[at + 1]
        at = at + 2
      end
      write(name, shadow, quota, 0, 0, 0, count)
      for parameter = at, at + count - 1 do write(kind[parameter]) end
      at = at + count
    end
    limits, numbers[kind] = limits + kind[1], costs
  end
  for _, gap in ipairs(gaps) do
    if not numbers[gap.kind] then write_limits(gap.kind) end
    for _, number in ipairs(gap.keys) do
      uses[number] = (uses[number] or 0) + gap.times
      if uses[number] > 1 and uses[number] - gap.times <= 1 then open[#open + 1] = number end
    end
  end
  written[4] = limits
  write(#open, unpack(open))
  for _, gap in ipairs(gaps) do
    local costs = numbers[gap.kind]
    for _ = 1, gap.times do
      write(gap.kind[2], gap.kind[1])
      for i, number in ipairs(gap.keys) do write(costs.before + i, number, costs[i]) end
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
