-- A gcra that warms up. Parameters and stored value: warm-up.lua.
--
-- Uses: arrival_time, warm_up

local gcra = warm_up(arrival_time(), 40)

gcra.parameters = { 'unit', 'speed', 'tick', 'interval', 'rest', 'use', 'warm', 'cold', 'extra' }

return gcra
