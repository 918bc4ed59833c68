import { placeOf } from '../../../engine/limits/hierarchy.js';
import { hashIdentity, plainIdentity } from '../../../engine/limits/identity.js';
import type { Counter } from '../../../engine/limits/counter.js';

/**
 * The key of a counter: `prefix:{identity}:namespace:name:code`. The braces make the identity the hash tag, so that all limits of one
 * identity are in one slot of a Cluster and can be decided atomically. In a hierarchy, the identity there is that of the root, and the
 * others follow the code: `prefix:{org}:namespace:name:code/team/user/`, where `=` replaces a colon.
 */
export function keyOf(prefix: string, counter: Counter): string {
  const { limit, identity } = counter;
  const place = limit.parent === undefined ? undefined : placeOf(counter);
  if (place === undefined) return `${prefix}:{${plainIdentity(identity)}}:${limit.id}`;
  const [root, ...others] = place;
  return `${prefix}:{${root}}:${limit.id}/${others.join('/').replaceAll(':', '=')}/`;
}

/** Determines the slot in a Cluster, provided that the prefix contains no braces. */
export function hashTagOf(counter: Counter): string {
  const place = counter.limit.parent === undefined ? undefined : placeOf(counter);
  return place?.[0] ?? plainIdentity(counter.identity);
}

/** The key with the known state of the upstream whose limit a counter follows. */
export function noteKeyOf(key: string): string {
  return `${key}:learnt`;
}

/** The key of the learned rate of a counter, for limits without a rate of their own. */
export function rateKeyOf(key: string): string {
  return `${key}:rate`;
}

/** The key of a claim. Its id may contain any characters. */
export function claimKeyOf(key: string, id: string): string {
  return `${key}:claim:${hashIdentity(id)}`;
}

/** The key of a counter's credits: the same for all versions of its limit. */
export function creditsKeyOf(prefix: string, counter: Counter): string {
  return `${prefix}:{${hashTagOf(counter)}}:${counter.limit.lineage}:credits`;
}

/** The key that marks a credit as counted. Its id may contain any characters. */
export function creditIdKeyOf(prefix: string, counter: Counter, id: string): string {
  return `${creditsKeyOf(prefix, counter)}:${hashIdentity(id)}`;
}

/** The channel on which instances publish that units came back, so that rejected requests may pass. */
export function givenBackChannel(prefix: string): string {
  return `${prefix}:given-back`;
}

/** The keys that an algorithm's script may use in addition to the counter's own. */
export function extraKeysOf(key: string, { limit }: Counter): string[] {
  return (limit.algorithm.extraKeys ?? []).map((end) => `${key}:${end}`);
}

/** The keys that it uses with some parameters only. */
export function moreKeysOf(key: string, { limit }: Counter): string[] {
  return (limit.algorithm.moreKeys?.(limit.parameters) ?? []).map((end) => `${key}:${end}`);
}

/** The keys that features have for a counter. */
export function featureKeysOf(key: string, { limit }: Counter): string[] {
  return (limit.features ?? []).flatMap(({ script }) => (script?.ends ?? []).map((end) => `${key}:${end}`));
}

/** The key of the changed rates, and the channel for changes. It can't be a counter's key, since those contain braces. */
export function overridesKey(prefix: string): string {
  return `${prefix}:rates`;
}

/**
 * All keys of overrides: the rates of all identities, all other overrides, when they expire, and the history. The braces make the first key
 * the hash tag of the others, so that all are in one slot of a Cluster; `keyPrefix` is the connection's prefix of each key. They can't be
 * counters' keys, since those have two colons after the braces.
 */
export function overrideKeys(prefix: string, keyPrefix = ''): string[] {
  const rates = overridesKey(prefix);
  const others = ['overrides', 'expiries', 'changes'].map((name) => `${prefix}:{${keyPrefix}${rates}}:${name}`);
  return [rates, ...others];
}

/** The keys of limits across several regions, in addition to those of counters. */
export function regionKeys(prefix: string) {
  // The home may be on a region's own server.
  const atHome = `${prefix}:world`;
  return {
    /** At home: the prefix of all counters. */
    atHome,
    /** At home: the known state of its regions. */
    regions: `${atHome}:regions`,
    /** At home: the channel for counters that ended. */
    ended: `${atHome}:ended`,
    /** In a region: the known state of its home. */
    home: (region: string) => `${prefix}:home:${region}`,
    /** In a region: the prefix of the keys of counters that may hold units. */
    held: (region: string) => `${prefix}:{held:${region}}`,
  };
}

/** The prefix of a region's name in the home's record of its regions. */
const SEEN = 'seen:';

/** The names of all regions that have called the home, from the fields of that record. */
export function regionsIn(fields: readonly string[]): string[] {
  return fields.flatMap((field) => (field.startsWith(SEEN) ? [field.slice(SEEN.length)] : []));
}

/** The keys of the console, in one slot of a Cluster. They can't be counters' keys, since those have two colons after the braces. */
export function consoleKeys(prefix: string) {
  const key = (name: string) => `${prefix}:{console}:${name}`;
  return {
    /** When each instance last reported, including ended ones and those of the previous release. */
    seen: key('seen'),
    /** When each instance last reported that hasn't announced its end. */
    reports: key('reports'),
    /** When each instance last reported that has announced its end. */
    endings: key('endings'),
    /** The number of times that counts of ended instances were added to their sum. */
    folds: key('folds'),
    /** The last report of an instance before its counts were added to that sum; absent if they were not. */
    folded: (id: string) => key(`folded-${id}`),
    /** The description of an instance. It is kept for some minutes longer than the instance. */
    about: (id: string) => key(`about-${id}`),
    /** Until when a page displays the keys of a limit. */
    watched: key('watched'),
    /** The instance that checks for incidents to report, and the reported ones. */
    alerting: key('alerting'),
    alerts: key('alerts'),
    /** The limits of the app, and when each set of them was last published. */
    limits: (id: string) => key(`limits-${id}`),
    limitSets: key('limit-sets'),
    /** The log of actions on keys. */
    log: key('log'),
    instance: (id: string) => key(`instance-${id}`),
    /** The counts of an instance, in steps of one length. */
    counts: (id: string, stepMs: number) => key(`counts-${stepMs / 1000}-${id}`),
    /** The keys that were seen blocked and those that hold units, sorted by when that ends. */
    blocks: key('blocks'),
    holds: key('holds'),
    /** Since when such keys are recorded, and if some were left out because there was no room. */
    noted: key('noted'),
    unnoted: key('unnoted'),
    /** The most frequent keys of an instance. */
    top: (id: string) => key(`top-${id}`),
    /** The units that the clients of a limit requested from an instance, in some of its intervals. */
    demand: (id: string, label: string, intervalMs: number) => key(`demand-${id}-${intervalMs / 1000}-${label}`),
  };
}
