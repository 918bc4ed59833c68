-- Budget: counts like a calendar window, which documents the parameters and the stored value; features/holds.lua holds units.
--
-- Uses: make_algorithm

local budget = make_algorithm('calendar-window')

budget.parameters = { 'start', 'window_end', 'retain' }

return budget
