import type { Redis } from 'ioredis';

const MOVE = `
  local now = redis.call('TIME')
  local least = ARGV[2] - (now[1] * 1000 + now[2] / 1000 - ARGV[3])
  local width = tonumber(ARGV[4])
  for first = 1, #KEYS, width do
    local lives, is_over = {}, false
    for at = first, first + width - 1 do
      lives[at] = redis.call('PTTL', KEYS[at])
      is_over = is_over or lives[at] >= 0 and lives[at] - ARGV[1] < least
    end
    for at = first, first + width - 1 do
      local left = math.floor(lives[at] - ARGV[1] + 0.5)
      if is_over then redis.call('DEL', KEYS[at])
      elseif lives[at] >= 0 then redis.call('PEXPIRE', KEYS[at], string.format('%.0f', left)) end
    end
  end`;

/** The time of the server, in milliseconds. */
export async function serverTime(redis: Redis): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1000 + Number(micros) / 1000;
}

/**
 * Does to keys what the clock of their server does while that of a test goes on for `ms`: takes it off their lives, and deletes those
 * that are over. They live `patienceMs` longer than by the clock of the test, of which the time since `began` is gone. Keys side by side
 * in groups of `width` end together.
 */
export async function moveLives(
  redis: Redis,
  keys: readonly string[],
  { ms, patienceMs, began, width = 1 }: { ms: number; patienceMs: number; began: number; width?: number },
): Promise<void> {
  await redis.eval(MOVE, keys.length, ...keys, ms, patienceMs, began, width);
}
