-- The checks that the fast way has left to the general one: makes them a program of that one, and fills in their replies.
--
-- Uses: gaps, now, program, reply, settings, size
-- Leaves: filled, gap_ends

-- The end of the reply of each check; those of the fast way end first.
local plain_size, gap_ends = size, {}

local function program_of_gaps()
  local width, operation, at = program[1], program[2], 3
  local written, open, costs = { 0, now, settings and settings[2] or 1000, width }, {}, {}
  local function write(...)
    for _, value in ipairs({ ... }) do written[#written + 1] = value end
  end
  for i = 1, width do
    local name, quota, shadow, count = program[at], program[at + 1], 0, #program - 5
    costs[i] = program[at + 2]
    at = at + 3
    if width > 1 then
      shadow, count = program[at], program[at + 1]
      at = at + 2
    end
    write(name, shadow, quota, 0, 0, 0, count)
    for parameter = at, at + count - 1 do write(program[parameter]) end
    at = at + count
  end
  for _, gap in ipairs(gaps) do
    if gap.times > 1 then
      for number = gap.first, gap.first + width - 1 do open[#open + 1] = number end
    end
  end
  write(#open, unpack(open))
  for _, gap in ipairs(gaps) do
    for _ = 1, gap.times do
      write(operation, width)
      for i = 1, width do write(i, gap.first + i - 1, costs[i]) end
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
