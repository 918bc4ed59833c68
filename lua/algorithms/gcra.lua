-- Generic cell rate algorithm. Parameters and stored value: arrival-time.lua.

algorithms['gcra'] = {
  size = 40,
  open = arrival_time.open,
  fits = arrival_time.fits,
  take = arrival_time.take,
  give = arrival_time.give,
  remaining = arrival_time.remaining,
  retry = arrival_time.retry,
  covered = arrival_time.covered,
  owable = arrival_time.owable,
  reset = arrival_time.reset,
  save = function(p, s, key) put(key, arrival_time.raw(p, s), arrival_time.reset(p, s)) end,
}
