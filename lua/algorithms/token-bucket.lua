-- Token bucket: it lacks what is owed, and is full when nothing is. Parameters and stored value: arrival-time.lua; the step is the
-- interval where all tokens of one flow at once.
--
-- Uses: arrival_time

local token_bucket = arrival_time(true)

token_bucket.parameters = { 'unit', 'speed', 'tick', 'interval', 'step' }
token_bucket.encoded_size = 44
token_bucket.reuses_state = true

return token_bucket
