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
/** The reply of `PTTL` without a key. */
const NO_KEY = -2;
const CODES = new Map(algorithms.names.map((name) => [algorithms.get(name)!.code, name]));

/** The code of counters that a region keeps of limits over regions. */
const OF_REGION = 'rg';

/**
 * Refuses the Redis of a region. Its instances read changes of rates, modes and lists at the home, so that one here would do nothing.
 */
export async function assertKeepsChanges(place: AppRedis): Promise<void> {
  if ((await roleOf(place)) === 'region') throw new InputError(cliMessages.changesAtHome());
}

/** Refuses a name of which Redis has no counter, whatever counts it. */
export async function assertUsedName(place: AppRedis, name: string): Promise<void> {
  const ends = [`:${name}:`, `@module:${name}:`];
  const isIt = (key: string) => {
    const [, id = ''] = BEHIND_IDENTITY.exec(key) ?? [];
    return ends.some((end) => id.startsWith(end));
  };
  for (const prefix of await prefixesOf(place)) {
    if (await anyKey(place.redis, `${escaped(prefix)}:{*}:*${escaped(name)}:*`, MOST, isIt)) return;
  }
  await refuseName(place, name);
}

/**
 * Refuses a limit of which Redis has no counter: no instance has used it, so that a change of it would do nothing. Also refuses one that
 * instances count by another algorithm, whose counters have other keys, and one over regions, whose counters no command reaches.
 */
export async function assertUsed(place: AppRedis, limit: CompiledLimit): Promise<void> {
  const codes = await codesOf(place, place.prefix, limit);
  if (codes.has(limit.algorithm.code)) return;
  if (codes.has(OF_REGION) || (await isCountedAtHome(place, limit))) {
    throw new InputError(cliMessages.overRegions(limit.name));
  }
  await refuseLimit(place, limit, codes);
}

/** The same for a change of the limit's rate or mode, which the home keeps of all limits. */
export async function assertUsedForChange(place: AppRedis, limit: CompiledLimit): Promise<void> {
  const codes = new Set<string>();
  for (const prefix of await prefixesOf(place)) {
    for (const code of await codesOf(place, prefix, limit)) codes.add(code);
    if (codes.has(limit.algorithm.code)) return;
  }
  codes.delete(OF_REGION);
  await refuseLimit(place, limit, codes);
}

/** Refuses a limit over regions, whose counters are read by the app alone. */
export async function assertInOneRegion(place: AppRedis, limit: CompiledLimit): Promise<void> {
  if ((await roleOf(place)) === undefined) return;
  const codes = await codesOf(place, place.prefix, limit);
  if (!codes.has(OF_REGION) && !(await isCountedAtHome(place, limit))) return;
  throw new InputError(cliMessages.overRegions(limit.name));
}

async function isCountedAtHome(place: AppRedis, limit: CompiledLimit): Promise<boolean> {
  return (await roleOf(place)) === 'home' && (await codesOf(place, atHome(place.prefix), limit)).size > 0;
}

/** The codes of a limit's counters, until one of its own algorithm or of a region is found. */
async function codesOf({ redis }: AppRedis, prefix: string, limit: CompiledLimit): Promise<ReadonlySet<string>> {
  const { recordId, algorithm } = limit;
  const codes = new Set<string>();
  const begin = `${recordId}:`;
  await anyKey(redis, `${escaped(prefix)}:{*}:${escaped(recordId)}:*`, MOST, (key) => {
    const [, id = ''] = BEHIND_IDENTITY.exec(key) ?? [];
    const code = id.startsWith(begin) ? id.slice(begin.length, begin.length + algorithm.code.length) : undefined;
    if (code !== undefined) codes.add(code);
    return code === algorithm.code || code === OF_REGION;
  });
  return codes;
}

async function refuseLimit(place: AppRedis, { name, algorithm }: CompiledLimit, codes: ReadonlySet<string>) {
  const others = [...codes].map((code) => CODES.get(code) ?? `an option that gives keys the code '${code}'`);
  if (others.length > 0) throw new InputError(cliMessages.countedByOther(name, algorithm.name, others));
  await refuseName(place, name);
}

/**
 * What a Redis is to limits over regions. A region may count on the server of the home. Where instances listen for changes, it is not that
 * of a region alone, whose instances listen at the home.
 */
async function roleOf({ redis, prefix }: AppRedis): Promise<'home' | 'region' | undefined> {
  const [regions] = await redis.run([['pttl', `${atHome(prefix)}:regions`]]);
  if (regions !== NO_KEY) return 'home';
  if ((await listeners(redis, overridesKey(prefix))) > 1) return undefined;
  try {
    return (await anyKey(redis, `${escaped(prefix)}:home:*`, MOST, () => true)) ? 'region' : undefined;
  } catch {
    // The user may lack the right to search. A change then fails by its own search, and what only reads goes on.
    return undefined;
  }
}

/** The prefixes of counters whose limits a change here may concern. */
async function prefixesOf(place: AppRedis): Promise<readonly string[]> {
  const { prefix } = place;
  return (await roleOf(place)) === 'home' ? [prefix, atHome(prefix)] : [prefix];
}

async function refuseName(place: AppRedis, name: string): Promise<never> {
  const { redis, prefix } = place;
  if ((await roleOf(place)) === 'home') throw new InputError(cliMessages.unusedAtHome(name));
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

/** The prefix of a home's own keys. */
function atHome(prefix: string): string {
  return `${prefix}:world`;
}
