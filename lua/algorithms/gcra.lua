-- Generic cell rate algorithm. Parameters and stored value: arrival-time.lua.

algorithms['gcra'] = function()
  local gcra = arrival_time()
  gcra.size = 40
  function gcra.save(p, s, key) put(key, gcra.raw(p, s), gcra.reset(p, s)) end
  return gcra
end
