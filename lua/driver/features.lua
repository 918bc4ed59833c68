-- What limits have of features: a fragment of features/ returns its hooks. A state of such a limit holds in `changes` what it was charged
-- and what came back until it is saved: units and when they were charged, in turn; -1 where that is not known.
--
-- Uses: beside, has_features
-- Leaves: note_charge, note_correction, report_changes

local note_charge, note_correction, report_changes

if has_features then
  local NOW = -2

  local function note(state, units, at)
    if units == 0 then return end
    local changes = state.changes
    if not changes then
      changes = {}
      state.changes = changes
    end
    if at == NOW and changes[#changes] == NOW then
      changes[#changes - 1] = changes[#changes - 1] + units
    else
      changes[#changes + 1], changes[#changes + 2] = units, at
    end
  end

  function note_charge(limit, state, units)
    if limit.records then note(state, units, NOW) end
  end

  -- Notes a change of what was charged at a time.
  function note_correction(limit, state, difference, charged_at)
    if limit.records then note(state, difference, charged_at) end
  end

  -- A counter is saved. One beside another one, which has features, has nothing for them.
  function report_changes(limit, state)
    local changes, own_beside = state.changes, beside[state.number]
    state.changes = nil
    for _, feature in ipairs(own_beside and limit.features or {}) do
      local own = own_beside[feature.name]
      for i = 1, own and #changes or 0, 2 do
        local units, at = changes[i], changes[i + 1]
        if at == NOW then feature:charged(own, units) else feature:corrected(own, units, at) end
      end
    end
  end
end
