-- Generic cell rate algorithm. Parameters and stored value: arrival-time.lua.
--
-- Uses: arrival_time

local gcra = arrival_time()

gcra.parameters = { 'unit', 'speed', 'tick', 'interval' }
gcra.encoded_size = 40
gcra.reuses_state = true

return gcra
