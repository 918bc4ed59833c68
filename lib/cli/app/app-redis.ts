import { cliMessages } from '../../engine/errors/messages/cli.js';
import { RateLimitStoreError } from '../../engine/errors/errors.js';
import { ConsoleRedis, timeOf } from '../../console/telemetry/console-redis.js';
import { type ReadApp, readPublished } from '../../console/telemetry/published-limits.js';
import { overridesKey, regionKeys, regionsIn } from '../../storage/stores/redis/keys.js';
import { isErrorReply, pairsOf } from '../../storage/redis/reply-error.js';
import { reasonOf } from '../../engine/util/reason-of.js';
import { InputError } from '../command.js';
import type { RateLimitSettings } from '../../app/config/settings.js';
import type { Connection } from '../../storage/redis/connection.js';

/** The keys of one step of a search, and the most of all its steps. */
const STEP = 1000;
export const MOST_KEYS = 1_000_000;

/** True if a key is found, in steps between which the server serves others. Throws `InputError` if Redis does not let it search. */
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

/** The Redis of an app, for commands of the program's own. */
export interface AppRedis {
  readonly redis: ConsoleRedis;
  readonly prefix: string;
}

/** The Redis of a connection. */
export function appRedis(
  connection: Connection,
  { prefix, timeoutMs }: Pick<RateLimitSettings, 'prefix' | 'timeoutMs'>,
): AppRedis {
  return { redis: new ConsoleRedis(connection, prefix, timeoutMs), prefix };
}

/** What the Redis of `--redis` is to apps in several regions. It may be both. */
export interface RegionRole {
  /** True if it counts for several regions. */
  readonly isHome: boolean;
  /** True if it counts for a region: then its instances read changes at the home. */
  readonly isRegion: boolean;
  /** Why it is not known. */
  readonly unread?: string;
}

export const NO_REGIONS: RegionRole = { isHome: false, isRegion: false };

/** True if changes are kept at a home that is not given. */
export function isWithoutHome({ isHome, isRegion }: RegionRole, home: unknown): boolean {
  return home === undefined && isRegion && !isHome;
}

/** A record of the home that is younger was written by an instance that runs: each region calls once a second. */
const FRESH_MS = 60_000;

/** Reads what a Redis is to regions. With the option `--home`, throws `InputError` if that is not the home of the region. */
export async function readRole(
  own: AppRedis,
  home: { place: AppRedis; address: string } | undefined,
): Promise<RegionRole> {
  try {
    const known = await regionsAt(own);
    const names = await regionsOf(own);
    const isHome = known !== undefined && (names.length === 0 || names.some((name) => known.includes(name)));
    if (home !== undefined) await assertHomeOf(names, home, own.prefix);
    return { isHome, isRegion: names.length > 0 || (await isPublished(own)) };
  } catch (error) {
    if (error instanceof RateLimitStoreError) return { ...NO_REGIONS, unread: error.message };
    throw error;
  }
}

async function assertHomeOf(
  names: readonly string[],
  { place, address }: { place: AppRedis; address: string },
  prefix: string,
): Promise<void> {
  const called = await regionsAt(place);
  // An app whose limits over regions were not used yet has left no trace but its instances, which listen for changes.
  const isHome =
    names.length > 0
      ? names.some((name) => called?.includes(name))
      : called !== undefined || (await listeners(place.redis, overridesKey(prefix))) > 0;
  if (!isHome) throw new InputError(cliMessages.notHome(address, names[0], prefix));
}

/** The names of the regions that call a Redis their home; `undefined` if none does. */
async function regionsAt({ redis, prefix }: AppRedis): Promise<string[] | undefined> {
  const [reply] = await permitted(redis.read([['hgetall', regionKeys(prefix).regions]]), [[]]);
  const fields = pairsOf(reply ?? []).map(([field]) => field);
  return fields.length === 0 ? undefined : regionsIn(fields);
}

/** True if instances with a console say that they are in a region: the only trace before a limit over regions is used. */
async function isPublished({ redis }: AppRedis): Promise<boolean> {
  try {
    const published = await readPublished(redis);
    return published !== undefined && isInRegion(published);
  } catch (error) {
    // What is unreadable says nothing: neither a value that nobody of ours wrote, nor one that the user may not read.
    if (error instanceof RateLimitStoreError && !isErrorReply(error.cause)) throw error;
    return false;
  }
}

/** True if instances say that they are in a region, or have limits that they can have only there. */
function isInRegion({ region, limits }: ReadApp): boolean {
  return region !== undefined || limits.some(({ definition }) => definition?.['scope'] === 'world');
}

/** What is read; or what stands for it, if the user lacks the right. */
async function permitted<T>(reading: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof RateLimitStoreError && reasonOf(error.cause).startsWith('NOPERM')) return otherwise;
    throw error;
  }
}

/** The names of the regions whose units a Redis holds. */
async function regionsOf({ redis, prefix }: AppRedis): Promise<string[]> {
  const begin = regionKeys(prefix).home('');
  const names: string[] = [];
  try {
    await anyKey(redis, `${escaped(begin)}*`, MOST_KEYS, (key) => {
      names.push(key.slice(begin.length));
      return false;
    });
  } catch (error) {
    // The user may lack the right to search. A change then fails by its own search, and what only reads goes on.
    if (error instanceof InputError) return [];
    throw error;
  }
  if (names.length === 0 || (await listeners(redis, overridesKey(prefix))) === 0) return names;
  // Instances read changes here, so that older records are left over from before.
  const asked = redis.read([['time'], ...names.map((name) => ['hget', begin + name, 'at'] as const)]);
  const [time, ...ats] = await permitted(asked, []);
  // What is not known to be old holds.
  if (time === undefined) return names;
  const isFresh = (at: unknown) => typeof at === 'string' && timeOf(time) - Number(at) < FRESH_MS;
  return names.filter((_, index) => isFresh(ats[index]));
}
