-- What fragments of features/ share. Only calls that need a feature make it.
--
-- Leaves: as_text, ask

local function as_text(number) return string.format('%.0f', number) end

-- Runs a command on a key. One of another type counts as none.
local function ask(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) == 'table' and reply.err then
    if not string.find(reply.err, 'WRONGTYPE') then error(reply.err, 0) end
    redis.call('DEL', key)
    reply = redis.call(command, key, ...)
  end
  return reply
end
