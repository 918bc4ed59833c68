-- Fixed window. Parameters: interval. Stored value: window-count.lua.

algorithms['fixed-window'] = {
  size = 32,
  open = function(p, raw, now)
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
  end,

  fits = window_count.fits,
  take = window_count.take,
  give = window_count.give,
  remaining = window_count.remaining,
  retry = window_count.retry,
  reset = window_count.reset,
  save = function(p, s, key) put(key, window_count.raw(s), window_count.reset(p, s)) end,
}
