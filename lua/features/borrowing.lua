-- What entries of a check may borrow. One beyond its own rate also takes its cost from the entry it is within, which keeps a part
-- of its quota from borrowers. Of all ways the one with the shortest wait counts, and of these the one that borrows least. A limit
-- that has a ceiling counts under it, and its own rate is lower by a fixed number of units.

-- The waits of an entry with all entries within it, by its own rate and with what it borrows, and whether those within it
-- borrow then. `alone` and `lending` are their waits if none of them borrows, and if they may.
local function weigh(wait_for, limit, state, cost, above, kept, alone, lending)
  if limit.shadow then return lending, math.huge, lending < alone, false end
  local own, lends_own, borrowing, lends_borrowing = max(alone, wait_for(limit, state, cost + above)), false, math.huge, false
  if lending < alone then
    local wait = max(lending, wait_for(limit, state, cost + max(above, kept)))
    lends_own = wait < own
    own = min(own, wait)
  end
  if above > 0 and own > 0 then
    borrowing = max(alone, wait_for(limit, state, cost))
    if lending < alone then
      local wait = max(lending, wait_for(limit, state, cost + kept))
      lends_borrowing = wait < borrowing
      borrowing = min(borrowing, wait)
    end
  end
  return own, borrowing, lends_own, lends_borrowing
end

-- Each number of an entry, the deepest first, is followed by that of the entry it is within or 0, by how much its ceiling is above
-- its rate, and by what it keeps from borrowers.
local function fit_together(links, wait_for, count, entry_limits, entry_costs, found, fitting)
  local alone, lending, own, borrowing, lends_own, lends_borrowing, lends, withheld = {}, {}, {}, {}, {}, {}, {}, {}
  for i = 1, count do alone[i], lending[i], withheld[i] = 0, 0, 0 end
  for each = 1, #links, 4 do
    local i, parent, above, kept = links[each], links[each + 1], links[each + 2], links[each + 3]
    own[i], borrowing[i], lends_own[i], lends_borrowing[i] =
      weigh(wait_for, entry_limits[i], found[i], entry_costs[i], above, kept, alone[i], lending[i])
    if parent > 0 then
      alone[parent] = max(alone[parent], own[i])
      lending[parent] = max(lending[parent], min(own[i], borrowing[i]))
    end
  end
  for each = #links - 3, 1, -4 do
    local i, parent, above, kept = links[each], links[each + 1], links[each + 2], links[each + 3]
    local limit = entry_limits[i]
    local is_borrowed = (parent == 0 or lends[parent]) and borrowing[i] < own[i]
    if is_borrowed then lends[i], above = lends_borrowing[i], 0 else lends[i] = lends_own[i] end
    if not limit.shadow then
      withheld[i] = max(above, lends[i] and kept or 0)
      fitting[i] = wait_for(limit, found[i], entry_costs[i] + withheld[i]) == 0
    end
  end
  for i = 1, count do
    if not fitting[i] and not entry_limits[i].shadow then return false, withheld end
  end
  return true, withheld
end

return { fit_together = fit_together }
