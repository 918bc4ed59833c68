-- A token bucket that warms up. Parameters and stored value: warm-up.lua.
--
-- Uses: arrival_time, warm_up

local token_bucket = warm_up(arrival_time(true), 44)

token_bucket.parameters = { 'unit', 'speed', 'tick', 'interval', 'step', 'rest', 'use', 'warm', 'cold', 'extra' }

return token_bucket
