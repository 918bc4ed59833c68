import { placeOf } from '../../../engine/limits/hierarchy.js';
import { hashIdentity, plainIdentity } from '../../../engine/limits/identity.js';
import type { Counter } from '../../../engine/limits/counter.js';

/**
 * The key of a counter: `prefix:{identity}:namespace:name:code`. The braces make the identity the hash tag, so that all limits of
 * one identity are in one slot of a Cluster and can be decided atomically. The key of a counter within others has the root's
 * identity there, and the other identities after its code: `prefix:{org}:namespace:name:code/team/user/`, where `=` stands for a
 * colon.
 */
export function keyOf(prefix: string, counter: Counter): string {
  const { limit, identity } = counter;
  const place = limit.parent === undefined ? undefined : placeOf(counter);
  if (place === undefined) return `${prefix}:{${plainIdentity(identity)}}:${limit.id}`;
  const [root, ...others] = place;
  return `${prefix}:{${root}}:${limit.id}/${others.join('/').replaceAll(':', '=')}/`;
}

/** Determines the slot in a Cluster, as long as the prefix contains no braces. */
export function hashTagOf(counter: Counter): string {
  const place = counter.limit.parent === undefined ? undefined : placeOf(counter);
  return place?.[0] ?? plainIdentity(counter.identity);
}

/** The key of what is known about the upstream whose limit a counter follows. */
export function noteKeyOf(key: string): string {
  return `${key}:learnt`;
}

/** The key of the learnt rate of a counter whose limit has none of its own. */
export function rateKeyOf(key: string): string {
  return `${key}:rate`;
}

/** The key of a claim. Its id may contain anything. */
export function claimKeyOf(key: string, id: string): string {
  return `${key}:claim:${hashIdentity(id)}`;
}

/** The key of a counter's credits: the same for all generations of its limit. */
export function creditsKeyOf(prefix: string, counter: Counter): string {
  return `${prefix}:{${hashTagOf(counter)}}:${counter.limit.lineage}:credits`;
}

/** The key of a credit that counts once. Its id may contain anything. */
export function creditIdKeyOf(prefix: string, counter: Counter, id: string): string {
  return `${creditsKeyOf(prefix, counter)}:${hashIdentity(id)}`;
}

/** The channel on which instances publish that units came back, so that refused requests may be allowed. */
export function givenBackChannel(prefix: string): string {
  return `${prefix}:given-back`;
}

/** The keys that an algorithm's fragment may touch besides the counter's own. */
export function extraKeysOf(key: string, { limit }: Counter): string[] {
  return (limit.algorithm.extraKeys ?? []).map((end) => `${key}:${end}`);
}

/** Those that it touches by some parameters only. */
export function moreKeysOf(key: string, { limit }: Counter): string[] {
  return (limit.algorithm.moreKeys?.(limit.parameters) ?? []).map((end) => `${key}:${end}`);
}

/** The keys of features that go with a counter. */
export function featureKeysOf(key: string, { limit }: Counter): string[] {
  return (limit.features ?? []).flatMap(({ script }) => (script?.ends ?? []).map((end) => `${key}:${end}`));
}

/** The key of the changed rates, and the channel on which changes are published. No counter has it: their keys contain braces. */
export function overridesKey(prefix: string): string {
  return `${prefix}:rates`;
}

/**
 * All keys of overrides: the rates of all identities, all other overrides, when they expire, and the history. The braces make the
 * first key the hash tag of the others, so that they are in its slot of a Cluster; `keyPrefix` is what the connection prepends to
 * each key. No counter has these keys: theirs have two colons after the braces.
 */
export function overrideKeys(prefix: string, keyPrefix = ''): string[] {
  const rates = overridesKey(prefix);
  const others = ['overrides', 'expiries', 'changes'].map((name) => `${prefix}:{${keyPrefix}${rates}}:${name}`);
  return [rates, ...others];
}

/** The keys of limits over several regions, beside those of counters. */
export function regionKeys(prefix: string) {
  // The home may be a region's own server.
  const atHome = `${prefix}:world`;
  return {
    /** At home: the prefix of all counters there. */
    atHome,
    /** At home: what it knows of its regions. */
    regions: `${atHome}:regions`,
    /** At home: the channel on which it is said that counters ended. */
    ended: `${atHome}:ended`,
    /** In a region: what it knows of its home. */
    home: (region: string) => `${prefix}:home:${region}`,
    /** In a region: what the keys of its counters that may hold units begin with. */
    held: (region: string) => `${prefix}:{held:${region}}`,
  };
}

/** What stands before the name of a region in what the home knows of its regions. */
const SEEN = 'seen:';

/** The names of all regions that have called, by the fields of that. */
export function regionsIn(fields: readonly string[]): string[] {
  return fields.flatMap((field) => (field.startsWith(SEEN) ? [field.slice(SEEN.length)] : []));
}

/** The keys of the console, in one slot of a Cluster. No counter has them: theirs have two colons behind the braces. */
export function consoleKeys(prefix: string) {
  const key = (name: string) => `${prefix}:{console}:${name}`;
  return {
    /** When each instance last reported, those of the release before and ended ones included. */
    seen: key('seen'),
    /** When each instance last reported that did not say that it ends. */
    reports: key('reports'),
    /** When each instance last reported that said so. */
    endings: key('endings'),
    /** How often counts of ended instances were added to their sum. */
    folds: key('folds'),
    /** The last report of an instance before counts of it were added to that sum; absent if none were. */
    folded: (id: string) => key(`folded-${id}`),
    /** What an instance was: kept for some minutes longer than the instance. */
    about: (id: string) => key(`about-${id}`),
    /** Until when a page shows the keys of a limit. */
    watched: key('watched'),
    /** The instance that looks for incidents to report, and those that were reported. */
    alerting: key('alerting'),
    alerts: key('alerts'),
    /** The limits of the app, and when each set of them was published last. */
    limits: (id: string) => key(`limits-${id}`),
    limitSets: key('limit-sets'),
    /** The log of what was done to keys. */
    log: key('log'),
    instance: (id: string) => key(`instance-${id}`),
    /** What an instance counted, in steps of a length. */
    counts: (id: string, stepMs: number) => key(`counts-${stepMs / 1000}-${id}`),
    /** The keys that were seen blocked, and those that hold units, by the time at which that ends. */
    blocks: key('blocks'),
    holds: key('holds'),
    /** Since when such keys are noted, and whether there was no room for some. */
    noted: key('noted'),
    unnoted: key('unnoted'),
    /** The keys that an instance saw most. */
    top: (id: string) => key(`top-${id}`),
    /** What the clients of a limit asked an instance for in some of its intervals. */
    demand: (id: string, label: string, intervalMs: number) => key(`demand-${id}-${intervalMs / 1000}-${label}`),
  };
}
