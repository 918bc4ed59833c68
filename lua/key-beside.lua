-- What counters have besides their own keys, by the numbers of these keys and by names: numbers of keys, and texts. A feature finds there
-- what it keeps; a name behind a colon is that of one key.
--
-- Leaves: beside, key_beside

local beside = {}

-- A key that a counter has beside its own. Every key is in KEYS: a script makes none.
local function key_beside(state, name) return KEYS[beside[state.number][name][1]] end
