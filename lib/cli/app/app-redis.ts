import { cliMessages } from '../../engine/errors/messages/cli.js';
import { RateLimitStoreError } from '../../engine/errors/errors.js';
import { type ConsoleRedis, timeOf } from '../../console/telemetry/console-redis.js';
import { readPublished } from '../../console/telemetry/published-limits.js';
import { overridesKey, regionKeys, regionsIn } from '../../storage/stores/redis/keys.js';
import { isErrorReply, pairsOf } from '../../storage/redis/errors.js';
import { reasonOf } from '../../engine/errors/reasons.js';
import { InputError } from '../command.js';

/** The number of keys per step of a search, and the maximum of all its steps. */
const STEP = 1000;
const MOST_KEYS = 1_000_000;

/**
 * Searches for keys, step by step, so that the server serves other clients in between. Throws `InputError` if the Redis user may not
 * search.
 */
export async function* keysLike(redis: ConsoleRedis, pattern: string, most = MOST_KEYS): AsyncGenerator<string[]> {
  let cursor = '0';
  for (let looked = 0; looked < most; looked += STEP) {
    const [reply] = await redis.run([['scan', cursor, 'match', pattern, 'count', STEP]]).catch((error: unknown) => {
      throw new InputError(cliMessages.notSearched(reasonOf(error)));
    });
    const [next, keys] = reply as [string, string[]];
    yield keys;
    if (next === '0') return;
    cursor = next;
  }
}

/** The number of connections that listen to a channel, including that of this process; 0 if the server doesn't report it. */
export async function listeners(redis: ConsoleRedis, channel: string): Promise<number> {
  try {
    const [reply] = await redis.run([['pubsub', 'numsub', channel]]);
    return Number((reply as unknown[])[1]);
  } catch {
    // The Redis user may lack the permission.
    return 0;
  }
}

/** Escapes a text for a Redis pattern. */
export function escaped(text: string): string {
  return text.replaceAll(/[\\*?[\]^]/g, String.raw`\$&`);
}

/** The role of the Redis server of `--redis` for apps in several regions. It may be both. */
export interface RegionRole {
  /** True if it counts for several regions. */
  readonly isHome: boolean;
  /** True if it counts for a region, whose instances then read changes at the home. */
  readonly isRegion: boolean;
  /** The reason why the role is unknown. */
  readonly unread?: string;
}

/** Returns true if changes are kept at a home that was not passed. */
export function isWithoutHome({ isHome, isRegion }: RegionRole, home: unknown): boolean {
  return home === undefined && isRegion && !isHome;
}

/** A more recent record of the home is from a running instance, since each region calls once per second. */
const FRESH_MS = 60_000;

/** Reads the role of a Redis server. With the option `--home`, throws `InputError` if that isn't the home of the region. */
export async function readRole(
  own: ConsoleRedis,
  home: { place: ConsoleRedis; address: string } | undefined,
): Promise<RegionRole> {
  try {
    const known = await regionsAt(own);
    const names = await regionsOf(own);
    const isHome = known !== undefined && (names.length === 0 || names.some((name) => known.includes(name)));
    if (home !== undefined && !(await isHomeOf(names, home.place))) {
      throw new InputError(cliMessages.notHome(home.address, names[0], own.prefix));
    }
    return { isHome, isRegion: names.length > 0 || (await isPublished(own)) };
  } catch (error) {
    if (error instanceof RateLimitStoreError) return { isHome: false, isRegion: false, unread: error.message };
    throw error;
  }
}

async function isHomeOf(names: readonly string[], place: ConsoleRedis): Promise<boolean> {
  const called = await regionsAt(place);
  if (names.length > 0) return called !== undefined && names.some((name) => called.includes(name));
  // Before its limits across regions are used, the only trace of an app is its instances, which listen for changes.
  return called !== undefined || (await listeners(place, overridesKey(place.prefix))) > 0;
}

/** The names of the regions that use a Redis server as their home; `undefined` if none does. */
async function regionsAt(redis: ConsoleRedis): Promise<string[] | undefined> {
  const [reply] = await permitted(redis.read([['hgetall', regionKeys(redis.prefix).regions]]), [[]]);
  const fields = pairsOf(reply ?? []).map(([field]) => field);
  return fields.length === 0 ? undefined : regionsIn(fields);
}

/** Returns true if instances with a console report a region: the only trace before a limit across regions is used. */
async function isPublished(redis: ConsoleRedis): Promise<boolean> {
  try {
    const { region, limits } = (await readPublished(redis)) ?? { limits: [] };
    // Limits of scope 'world' exist only in regions.
    return region !== undefined || limits.some(({ definition }) => definition?.['scope'] === 'world');
  } catch (error) {
    // Unreadable values are ignored: those that others wrote, and those that the Redis user may not read.
    if (error instanceof RateLimitStoreError && !isErrorReply(error.cause)) throw error;
    return false;
  }
}

/** Resolves to the value, or to `otherwise` if the Redis user lacks the permission. */
async function permitted<T>(reading: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof RateLimitStoreError && reasonOf(error.cause).startsWith('NOPERM')) return otherwise;
    throw error;
  }
}

/** The names of the regions whose units are on a Redis server. */
async function regionsOf(redis: ConsoleRedis): Promise<string[]> {
  const begin = regionKeys(redis.prefix).home('');
  const names: string[] = [];
  try {
    for await (const keys of keysLike(redis, `${escaped(begin)}*`)) {
      names.push(...keys.map((key) => key.slice(begin.length)));
    }
  } catch (error) {
    // The Redis user may not be allowed to search. A change then fails because of its own search, and a read continues.
    if (error instanceof InputError) return [];
    throw error;
  }
  if (names.length === 0 || (await listeners(redis, overridesKey(redis.prefix))) === 0) return names;
  // Instances read changes here, so older records are leftovers.
  const asked = redis.read([['time'], ...names.map((name) => ['hget', begin + name, 'at'] as const)]);
  const [time, ...ats] = await permitted(asked, []);
  // A record counts unless it is known to be old.
  if (time === undefined) return names;
  const isFresh = (at: unknown) => typeof at === 'string' && timeOf(time) - Number(at) < FRESH_MS;
  return names.filter((_, index) => isFresh(ats[index]));
}
