import { algorithms } from '../../algorithms/index.js';
import { cliMessages } from '../../errors/messages/cli.js';
import type { CompiledLimit } from '../../limits/compiled-limit.js';
import { overridesKey } from '../../stores/redis/keys.js';
import { reasonOf } from '../../util/reason-of.js';
import { InputError } from '../command.js';
import type { AppRedis } from './app-redis.js';

/** The keys of one step of a search, and the most of all its steps. */
const STEP = 1000;
const MOST = 1_000_000;
/** The most keys of a search for names to suggest. */
const MOST_FOR_NAMES = 50_000;

/** What stands behind the identity of a counter's key: `namespace:name:code`, and what belongs to the counter. */
const BEHIND_IDENTITY = /\}:(.*)$/s;
const CODES = new Map(algorithms.names.map((name) => [algorithms.get(name)!.code, name]));

/** Refuses a name of which Redis has no counter, whatever counts it. */
export async function assertUsedName(place: AppRedis, name: string): Promise<void> {
  const ends = [`:${name}:`, `@module:${name}:`];
  const isIt = (key: string) => {
    const [, id = ''] = BEHIND_IDENTITY.exec(key) ?? [];
    return ends.some((end) => id.startsWith(end));
  };
  const pattern = `${escaped(place.prefix)}:{*}:*${escaped(name)}:*`;
  if (!(await anyKey(place.redis, pattern, MOST, isIt))) await refuseName(place, name);
}

/**
 * Refuses a limit of which Redis has no counter: no instance has used it, so that a change of it would do nothing. Also refuses one that
 * instances count by another algorithm, whose counters have other keys.
 */
export async function assertUsed({ redis, prefix }: AppRedis, limit: CompiledLimit): Promise<void> {
  const { name, recordId, algorithm } = limit;
  const codes = new Set<string>();
  const begin = `${recordId}:`;
  const isIt = (key: string) => {
    const [, id = ''] = BEHIND_IDENTITY.exec(key) ?? [];
    const code = id.startsWith(begin) ? id.slice(begin.length, begin.length + algorithm.code.length) : undefined;
    if (code !== undefined) codes.add(code);
    return code === algorithm.code;
  };
  if (await anyKey(redis, `${escaped(prefix)}:{*}:${escaped(recordId)}:*`, MOST, isIt)) return;
  const others = [...codes].map((code) => CODES.get(code) ?? `an option that gives keys the code '${code}'`);
  if (others.length > 0) throw new InputError(cliMessages.countedByOther(name, algorithm.name, others));
  await refuseName({ redis, prefix }, name);
}

async function refuseName({ redis, prefix }: AppRedis, name: string): Promise<never> {
  const names = new Set<string>();
  await anyKey(redis, `${escaped(prefix)}:{*}:*`, MOST_FOR_NAMES, (key) => {
    const found = nameIn(key);
    if (found !== undefined) names.add(found);
    return false;
  });
  throw new InputError(cliMessages.unusedName(name, prefix, [...names].toSorted()));
}

/** Refuses a prefix that no instance uses: none listens for changes, and Redis has no key of it. */
export async function assertUsedPrefix({ redis, prefix }: AppRedis): Promise<void> {
  if ((await listeners(redis, overridesKey(prefix))) > 1) return;
  if (!(await anyKey(redis, `${escaped(prefix)}:{*}:*`, MOST, () => true))) {
    throw new InputError(cliMessages.unusedPrefix(prefix));
  }
}

/** How many connections listen to a channel, that of this process included; 0 if the server does not say. */
async function listeners(redis: AppRedis['redis'], channel: string): Promise<number> {
  try {
    const [reply] = await redis.run([['pubsub', 'numsub', channel]]);
    return Number((reply as unknown[])[1]);
  } catch {
    // The user may lack the right.
    return 0;
  }
}

/** Whether a key is found, in steps between which the server serves others. */
async function anyKey(
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

function nameIn(key: string): string | undefined {
  const [, id = ''] = BEHIND_IDENTITY.exec(key) ?? [];
  const [, name, code = ''] = /^[^:]*:(.+?):([a-z]{2})(?:[./:].*)?$/s.exec(id) ?? [];
  return CODES.has(code) ? name : undefined;
}

/** A text of a pattern of Redis that stands for itself. */
function escaped(text: string): string {
  return text.replaceAll(/[\\*?[\]^]/g, String.raw`\$&`);
}
