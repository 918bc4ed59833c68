-- Budget: counts as a calendar window, which says what the parameters are and what is stored; driver/holds.lua holds units.
--
-- Uses: make_algorithm

local budget = make_algorithm('calendar-window')

budget.parameters = { 'start', 'window_end', 'retain' }

return budget
