-- What the fast way has left to the general one: its checks as a program of that one, and what they reply in its place.
--
-- Uses: gaps, program, reply, size
-- Leaves: filled, gap_ends

-- Where the reply of each check ends; those of the fast way end first.
local plain_size, gap_ends = size, {}

local function program_of_gaps()
  local width, operation, at = program[1], program[2], 5
  local written, open, costs = { 0, program[3], program[4], width }, {}, {}
  local function write(...)
    for _, value in ipairs({ ... }) do written[#written + 1] = value end
  end
  for i = 1, width do
    costs[i] = program[at + 3]
    write(program[at], program[at + 1], program[at + 2], 0, 0, 0, program[at + 4])
    for parameter = at + 5, at + 4 + program[at + 4] do write(program[parameter]) end
    at = at + 5 + program[at + 4]
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
