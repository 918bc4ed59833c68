-- Calendar window. Parameters: start and end of the window that holds now, by the caller's time zone; retain.
-- Stored: four doubles: count, start, end of the running window, when it was last charged. With retain, finished windows
-- are in a list at key .. ':history', which is in KEYS too: start, end, count of each, the newest last.

do
  local function history_key(key) return key .. ':history' end

  algorithms['calendar-window'] = {
    open = function(p, raw, now)
      local start, stop = p[1], p[2]
      if now < start or now >= stop then return nil end
      local s = { now = now, moved = false, count = 0, start = start, stop = stop, last = now }
      if not raw then return s end
      local old_count, old_start, old_stop, last = unpack_doubles('<dddd', raw)
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

    fits = function(p, s, cost) return s.count + cost <= p.quota end,
    take = function(p, s, cost)
      s.count = s.count + cost
      s.last = max(s.last, s.now)
    end,
    give = function(p, s, units) s.count = max(0, s.count - units) end,
    remaining = function(p, s) return max(0, p.quota - s.count) end,
    retry = function(p, s) return s.stop - s.now end,
    reset = function(p, s) return s.count > 0 and s.stop - s.now or 0 end,

    save = function(p, s, key)
      local retain = p[3]
      if s.finished then
        local list = history_key(key)
        redis.call('RPUSH', list, unpack(s.finished))
        while s.now >= redis.call('LINDEX', list, 1) + retain do redis.call('LTRIM', list, 3, -1) end
        redis.call('PEXPIRE', list, ceil((s.finished[2] + retain - s.now) / 1000) + time_to_live_slack)
      end
      put(key, pack('<dddd', s.count, s.start, s.stop, s.last), s.count > 0 and s.stop - s.now + retain or 0)
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
