import { cliMessages } from '../../engine/errors/messages/cli.js';
import { reasonOf } from '../../engine/util/reason-of.js';
import { InputError } from '../command.js';
import type { AppRedis } from './place-on-redis.js';

/** The keys of one step of a search, and the most of all its steps. */
const STEP = 1000;
export const MOST_KEYS = 1_000_000;

/** Whether a key is found, in steps between which the server serves others. Throws `InputError` if Redis does not let it search. */
export async function anyKey(
  redis: AppRedis['redis'],
  pattern: string,
  most: number,
  isIt: (key: string) => boolean,
): Promise<boolean> {
  let cursor = '0';
  for (let looked = 0; looked < most; looked += STEP) {
    const [next, keys] = await scan(redis, cursor, pattern);
    if (keys.some(isIt)) return true;
    cursor = next;
    if (cursor === '0') return false;
  }
  return false;
}

async function scan(redis: AppRedis['redis'], cursor: string, pattern: string): Promise<[string, string[]]> {
  try {
    const [reply] = await redis.run([['scan', cursor, 'match', pattern, 'count', STEP]]);
    return reply as [string, string[]];
  } catch (error) {
    throw new InputError(cliMessages.notSearched(reasonOf(error)));
  }
}

/** How many connections listen to a channel, that of this process included; 0 if the server does not say. */
export async function listeners(redis: AppRedis['redis'], channel: string): Promise<number> {
  try {
    const [reply] = await redis.run([['pubsub', 'numsub', channel]]);
    return Number((reply as unknown[])[1]);
  } catch {
    // The user may lack the right.
    return 0;
  }
}

/** A text of a pattern of Redis that stands for itself. */
export function escaped(text: string): string {
  return text.replaceAll(/[\\*?[\]^]/g, String.raw`\$&`);
}
