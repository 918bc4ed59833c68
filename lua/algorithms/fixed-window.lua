-- Fixed window. Parameters: interval. Stored value: window-count.lua.

algorithms['fixed-window'] = function()
  local fixed_window = window_count()
  fixed_window.size = 32

  function fixed_window.open(p, raw, now)
    local interval = p[1]
    if raw then
      local start, stop, count, last = unpack_doubles('<dddd', raw)
      stop = min(stop, start + interval)
      if last - now >= interval then
        return { now = now, moved = true, count = count, start = now, stop = now + interval, last = now }
      end
      if now < stop then
        return { now = now, moved = false, count = count, start = start, stop = stop, last = last }
      end
    end
    return { now = now, moved = false, count = 0, start = now, stop = now + interval, last = now }
  end

  function fixed_window.save(p, s, key) put(key, fixed_window.raw(p, s), fixed_window.reset(p, s)) end

  return fixed_window
end
