-- What entries of a check may borrow. One beyond its own rate also takes its cost from the entry it is within, which keeps a part
-- of its quota from borrowers. Of all ways the one with the shortest wait counts, and of these the one that borrows least. Only
-- for checks with a limit that has a ceiling, which the program marks: such a limit counts under its ceiling, and its own rate is
-- lower by a fixed number of units.
--
-- Uses: borrows, wait_for
-- Leaves: borrow, link, links, met

-- How many entries of the next check are linked; and, by entry, how many units to add to its cost for its own rate.
local links, met = 0, nil

local borrow, link

if borrows then
  -- The deepest first: their numbers, those of the entries they are within or 0, the difference of their ceilings and rates, and
  -- what they keep from borrowers.
  local link_entries, link_parents, link_above, link_kept = {}, {}, {}, {}

  met = {}

  function link(entry, parent, above, kept)
    links = links + 1
    link_entries[links], link_parents[links], link_above[links], link_kept[links] = entry, parent, above, kept
  end

  -- The waits of an entry with all entries within it, by its own rate and with what it borrows, and whether those within it
  -- borrow then. `alone` and `lending` are their waits if none of them borrows, and if they may.
  local function weigh(limit, state, cost, above, kept, alone, lending)
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

  -- Decides again which of the linked entries fit. Returns whether all entries of the check do, except those in shadow mode.
  function borrow(count, entry_limits, entry_costs, found, fitting)
    local alone, lending, own, borrowing, lends_own, lends_borrowing, lends = {}, {}, {}, {}, {}, {}, {}
    for i = 1, count do alone[i], lending[i], met[i] = 0, 0, 0 end
    for each = 1, links do
      local i, parent = link_entries[each], link_parents[each]
      own[i], borrowing[i], lends_own[i], lends_borrowing[i] =
        weigh(entry_limits[i], found[i], entry_costs[i], link_above[each], link_kept[each], alone[i], lending[i])
      if parent > 0 then
        alone[parent] = max(alone[parent], own[i])
        lending[parent] = max(lending[parent], min(own[i], borrowing[i]))
      end
    end
    for each = links, 1, -1 do
      local i, parent = link_entries[each], link_parents[each]
      local limit, above = entry_limits[i], link_above[each]
      local is_borrowed = (parent == 0 or lends[parent]) and borrowing[i] < own[i]
      if is_borrowed then lends[i], above = lends_borrowing[i], 0 else lends[i] = lends_own[i] end
      if not limit.shadow then
        met[i] = max(above, lends[i] and link_kept[each] or 0)
        fitting[i] = wait_for(limit, found[i], entry_costs[i] + met[i]) == 0
      end
    end
    for i = 1, count do
      if not fitting[i] and not entry_limits[i].shadow then return false end
    end
    return true
  end
end
