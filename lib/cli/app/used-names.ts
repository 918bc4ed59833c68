import { algorithms } from '../../engine/algorithms/index.js';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import { ROUTE_OF_CLASS } from '../../engine/limits/limit-settings.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { ExplainedLimit } from '../../nest/explain/explanation.js';
import { overridesKey, regionKeys } from '../../storage/stores/redis/keys.js';
import { ConsoleRedis } from '../../console/telemetry/console-redis.js';
import { InputError } from '../command.js';
import type { Places } from './started-app.js';
import { escaped, isWithoutHome, keysLike, listeners } from './app-redis.js';

const MOST_FOR_NAMES = 50_000;

/** A code, which a `c` follows for a candidate. */
const CODE = /^[a-z]{2}(?=$|[./:])/;
/** The characters that a namespace contains as escapes. */
const ESCAPED = /%(?:25|3A|0D|0A)/g;
const CODES = new Map(algorithms.names.map((name) => [algorithms.get(name)!.code, name]));

/** The code of the counters that a region has for limits across regions. */
const OF_REGION = 'rg';

/** Throws for the server of a region without its home: instances read changes at the home, so a change here would have no effect. */
export function assertKeepsChanges({ home, role }: Places): void {
  if (role.unread !== undefined) throw new InputError(role.unread);
  if (isWithoutHome(role, home)) throw new InputError(cliMessages.changesAtHome());
}

/** Throws for a name without counters on Redis, regardless of the algorithm. */
export async function assertUsedName(places: Places, name: string): Promise<void> {
  const ends = [`:${name}:`, `@module:${name}:`];
  const isIt = (key: string) => ends.some((end) => behindIdentity(key).startsWith(end));
  for (const redis of countersOf(places)) {
    for await (const keys of keysLike(redis, `${escaped(redis.prefix)}:{*}:*${escaped(name)}:*`)) {
      if (keys.some(isIt)) return;
    }
  }
  await refuseName(places, name);
}

/**
 * Throws for a limit without counters on Redis: no instance has used it, so a change would have no effect. Also throws if instances count
 * it with another algorithm, whose counters have other keys.
 */
export async function assertUsed(places: Places, limit: CompiledLimit): Promise<void> {
  const codes = await codesOfLimit(places, limit);
  if (!codes.has(limit.algorithm.code)) await refuseLimit(places, limit, codes);
}

/**
 * A note on a limit without counters on Redis if instances count its name by another algorithm or in another place: its explanation may
 * show a counter that nobody uses. `undefined` if there is nothing to note, or the Redis user may not search keys.
 */
export async function noteElsewhere(places: Places, limit: CompiledLimit): Promise<string | undefined> {
  const { name, algorithm } = limit;
  try {
    const codes = await codesOfLimit(places, limit, MOST_FOR_NAMES);
    if (codes.has(algorithm.code)) return undefined;
    if (codes.size > 0) return cliMessages.noteOther(name, algorithm.name, algorithmsOf(codes));
    const namespaces = (await namesOn(places)).get(name);
    return namespaces && cliMessages.noteElsewhere(name, [...namespaces].toSorted());
  } catch {
    return undefined;
  }
}

function codesOfLimit({ own, home }: Places, limit: CompiledLimit, most?: number): Promise<ReadonlySet<string>> {
  return codesOf(countsOverRegions(limit) ? atHomeOf(home!) : own, limit, most);
}

/** Returns true if a key has any state. */
export function isTouched({ quota, state }: Pick<ExplainedLimit, 'quota' | 'state'>): boolean {
  if (state === undefined) return false;
  const { remaining, resetAfterMs, blockedForMs = 0, offences = 0 } = state;
  return remaining < quota || resetAfterMs > 0 || blockedForMs > 0 || offences > 0;
}

/** The same for a change of the limit's rate or mode. The home keeps these for all limits. */
export async function assertUsedForChange(places: Places, limit: CompiledLimit): Promise<void> {
  const codes = new Set<string>();
  for (const place of countersOf(places)) {
    for (const code of await codesOf(place, limit)) codes.add(code);
    if (codes.has(limit.algorithm.code)) return;
  }
  codes.delete(OF_REGION);
  await refuseLimit(places, limit, codes);
}

/** Throws for a limit across regions whose home is unknown, before any call: in a region it would seem unused. */
export function assertHasHome({ home }: Places, limit: CompiledLimit): void {
  if (!countsOverRegions(limit) || home !== undefined) return;
  throw new InputError(cliMessages.overRegionsAtHome(limit.name));
}

/**
 * Throws if a Redis server doesn't count a limit, so that its counter there would seem unused: the instances count it on another server, or
 * its definition has another scope than theirs.
 */
export async function assertCountsHere(places: Places, limit: CompiledLimit): Promise<void> {
  const { own, home, role } = places;
  const isOfWorld = countsOverRegions(limit);
  if (role.unread !== undefined) throw new InputError(role.unread);
  if (home === undefined && !role.isRegion) return;
  const codes = await codesOf(own, limit);
  if (isOfWorld) {
    if (codes.has(limit.algorithm.code)) throw new InputError(cliMessages.notOverRegions(limit.name));
    return;
  }
  const isElsewhere = codes.has(OF_REGION) || (home !== undefined && (await codesOf(atHomeOf(home), limit)).size > 0);
  if (isElsewhere) throw new InputError(cliMessages.overRegions(limit.name));
  if (role.isHome && !role.isRegion) throw new InputError(cliMessages.homeWithoutCounters(limit.name));
}

/** Based on the feature's name, so that the feature itself isn't loaded. */
function countsOverRegions({ features }: CompiledLimit): boolean {
  return features?.some(({ name }) => name === 'regions') === true;
}

function atHomeOf({ client, prefix, timeoutMs }: ConsoleRedis): ConsoleRedis {
  return new ConsoleRedis(client, regionKeys(prefix).atHome, timeoutMs);
}

/** The servers with counters of limits that a change may concern. */
function countersOf({ own, home }: Places): readonly ConsoleRedis[] {
  return home === undefined ? [own] : [own, atHomeOf(home)];
}

/** The codes of a limit's counters, until one of its own algorithm or of a region is found. */
async function codesOf(redis: ConsoleRedis, limit: CompiledLimit, most?: number): Promise<ReadonlySet<string>> {
  const { recordId } = limit;
  const own = limit.algorithm.code;
  const codes = new Set<string>();
  const begin = `${recordId}:`;
  for await (const keys of keysLike(redis, `${escaped(redis.prefix)}:{*}:${escaped(recordId)}:*`, most)) {
    const ids = keys.map(behindIdentity).filter((id) => id.startsWith(begin));
    for (const id of ids) {
      const [code] = CODE.exec(id.slice(begin.length)) ?? [];
      if (code !== undefined) codes.add(code);
      if (code === own || code === OF_REGION) return codes;
    }
  }
  return codes;
}

async function refuseLimit(places: Places, limit: CompiledLimit, codes: ReadonlySet<string>): Promise<never> {
  const { name, algorithm } = limit;
  if (codes.size > 0) throw new InputError(cliMessages.countedByOther(name, algorithm.name, algorithmsOf(codes)));
  return refuseName(places, name, countsOverRegions(limit));
}

function algorithmsOf(codes: ReadonlySet<string>): string[] {
  return [...codes].map((code) => CODES.get(code) ?? `an option that gives keys the code '${code}'`);
}

async function refuseName(places: Places, name: string, isOfWorld = false): Promise<never> {
  const { role, own } = places;
  if (role.isHome && !role.isRegion && !isOfWorld) throw new InputError(cliMessages.unusedAtHome(name));
  const names = await namesOn(places);
  const namespaces = names.get(name);
  if (namespaces !== undefined) throw new InputError(cliMessages.countedElsewhere(name, [...namespaces].toSorted()));
  throw new InputError(cliMessages.unusedName(name, own.prefix, [...names.keys()].toSorted()));
}

/** The names of the limits with counters, each with the namespaces that it has. */
async function namesOn(places: Places): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const names = new Map<string, Set<string>>();
  for (const redis of countersOf(places)) {
    for await (const keys of keysLike(redis, `${escaped(redis.prefix)}:{*}:*`, MOST_FOR_NAMES)) {
      for (const { name, namespace } of keys.flatMap((key) => nameIn(key) ?? [])) {
        names.set(name, (names.get(name) ?? new Set()).add(namespace));
      }
    }
  }
  return names;
}

/** Throws for a prefix that no instance uses: none listens for changes, and Redis has no key with it. */
export async function assertUsedPrefix(places: Places): Promise<void> {
  const changed = places.home ?? places.own;
  const { prefix } = changed;
  if ((await listeners(changed, overridesKey(prefix))) > 1) return;
  for (const redis of countersOf(places)) {
    for await (const keys of keysLike(redis, `${escaped(redis.prefix)}:{*}:*`)) if (keys.length > 0) return;
  }
  throw new InputError(cliMessages.unusedPrefix(prefix));
}

/** The part of a counter's key after the identity: `namespace:name:code`, and the suffix for its other data. */
function behindIdentity(key: string): string {
  return /\}:(.*)$/s.exec(key)?.[1] ?? '';
}

function nameIn(key: string): { readonly name: string; readonly namespace: string } | undefined {
  const [, namespace, name, code = ''] = /^([^:]*):(.+?):([a-z]{2})(?:[./:].*)?$/s.exec(behindIdentity(key)) ?? [];
  if (name === undefined || !CODES.has(code)) return undefined;
  return { name, namespace: namespace!.replaceAll(ESCAPED, decodeURIComponent).split(ROUTE_OF_CLASS).at(-1)! };
}
