-- Further keys and texts of counters, by the number of the counter's key and by name. The name is that of a feature, or a colon and the
-- end of one key.
--
-- Leaves: beside, key_beside

local beside = {}

-- A further key of a counter. Every key is in KEYS: scripts don't build keys.
local function key_beside(state, name) return KEYS[beside[state.number][name][1]] end
