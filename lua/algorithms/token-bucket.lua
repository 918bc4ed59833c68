-- Token bucket: it lacks what is owed, and is full when nothing is. Parameters and stored value: arrival-time.lua; the step is the
-- interval where all tokens of one flow at once.

algorithms['token-bucket'] = function()
  local token_bucket = arrival_time(true)
  token_bucket.size = 44
  function token_bucket.save(p, s, key) put(key, token_bucket.raw(p, s), token_bucket.reset(p, s)) end
  return token_bucket
end
