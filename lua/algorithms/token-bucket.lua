-- Token bucket: the tokens it lacks are its debt, and it is full when there is none. Parameters and stored value:
-- arrival-time.lua; the step is the interval if all tokens of an interval are added at once.
--
-- Uses: arrival_time

local token_bucket = arrival_time(true)

token_bucket.parameters = { 'unit', 'speed', 'tick', 'interval', 'step' }
token_bucket.encoded_size = 44
token_bucket.reuses_state = true

return token_bucket
