-- Calendar window. Parameters: start and end of the window that holds now, by the caller's time zone; retain.
-- Stored value: window-count.lua. With retain, finished windows are in a list at key .. ':history', which is in KEYS too:
-- start, end, count of each, the newest last.

algorithms['calendar-window'] = function()
  local window_count = window_count()

  local function history_key(key) return key .. ':history' end

  local function lives(p, s) return s.count > 0 and s.stop - s.now + p[3] or 0 end

  return {
    size = 32,
    open = function(p, raw, now)
      local start, stop = p[1], p[2]
      if now < start or now >= stop then return nil end
      local s = { now = now, moved = false, count = 0, start = start, stop = stop, last = now }
      if not raw then return s end
      local old_start, old_stop, old_count, last = unpack_doubles('<dddd', raw)
      if now >= old_stop then
        if p[3] > 0 and old_stop + p[3] > now then s.finished = { old_start, old_stop, old_count } end
      elseif now < old_start and last - now < old_stop - old_start then
        s.count, s.start, s.stop, s.last = old_count, old_start, old_stop, last
      else
        s.count = old_count
        s.moved = old_start ~= start or old_stop ~= stop
        if not s.moved then s.last = last end
      end
      return s
    end,

    fits = window_count.fits,
    take = window_count.take,
    give = window_count.give,
    remaining = window_count.remaining,
    retry = window_count.retry,
    reset = window_count.reset,

    -- It depends on the window alone, unless it is kept for longer.
    lives = function(p, s) return p[3] > 0 and lives(p, s) or 0 end,

    save = function(p, s, key)
      local retain = p[3]
      if s.finished then
        local list = history_key(key)
        redis.call('RPUSH', list, unpack(s.finished))
        while s.now >= redis.call('LINDEX', list, 1) + retain do redis.call('LTRIM', list, 3, -1) end
        redis.call('PEXPIRE', list, ceil((s.finished[2] + retain - s.now) / 1000) + time_to_live_slack)
      end
      put(key, window_count.raw(p, s), lives(p, s))
    end,

    history = function(p, s, key)
      local windows = redis.call('LRANGE', history_key(key), 0, -1)
      if s.finished then for i = 1, 3 do windows[#windows + 1] = s.finished[i] end end
      if s.count > 0 then for _, value in ipairs({ s.start, s.stop, s.count }) do windows[#windows + 1] = value end end
      local live = {}
      for i = 1, #windows, 3 do
        if windows[i + 1] + p[3] > s.now then
          live[#live + 1] = windows[i] / 1000
          live[#live + 1] = windows[i + 1] / 1000
          live[#live + 1] = tonumber(windows[i + 2])
        end
      end
      return live
    end,
  }
end
