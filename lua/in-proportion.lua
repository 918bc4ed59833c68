-- amount x to / from, rounded up. For whole numbers below 2^53 the result is exact if it is below 2^53, however large the
-- intermediate product; beyond that, the nearest doubles.
--
-- Leaves: in_proportion

local function in_proportion(amount, to, from)
  local part = math.fmod(amount, from)
  local whole = (amount - part) / from * to
  if part == 0 then return whole end
  -- Long division of part x to, bit by bit of `to`: no intermediate number exceeds the divisor.
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
