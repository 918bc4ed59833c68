import { createHash } from 'node:crypto';
import type { RateLimitSettings } from '../../app/config/settings.js';
import type { LimitRegistry, NamedLimit } from '../../app/rules/limit-registry.js';
import { pairsOf } from '../../storage/redis/errors.js';
import type { LimitInfo } from '../api.js';
import type { LimitCatalog } from '../limit-catalog.js';
import type { Command, ConsoleRedis } from './console-redis.js';

/** A limit as instances publish it for a console outside the app. */
export interface PublishedLimitInfo {
  readonly info: LimitInfo;
  /** Its options, if they are sufficient to find its counters. Functions are left out. */
  readonly definition?: Readonly<Record<string, unknown>>;
  /** The place of its definition: the module's `limits`, or `define` and `forFeature`. */
  readonly place?: 'limits' | 'define';
}

/** The limits of an app as published by one of its instances. */
export interface PublishedApp {
  readonly version: string;
  readonly ipv6Prefix: number;
  readonly identities: 'hashed' | 'plain';
  /** The name of the instance's region, if there are several. */
  readonly region?: string | undefined;
  readonly limits: readonly PublishedLimitInfo[];
}

/** The published limits of all instances, and when the newest of them were published. */
export interface ReadApp extends PublishedApp {
  /** In milliseconds since the epoch, on the clock of Redis. */
  readonly at: number;
}

/** How long the limits of an app are kept after its last instance has ended. */
const KEPT_SECONDS = 7 * 86_400;
/** Limits published this much earlier than the newest ones are from instances that were replaced. */
const REPLACED_MS = 3_600_000;
/** Maximum number of different sets of limits. A deployment adds one. */
const MOST_SETS = 20;
/** Maximum number of characters per set; further limits are left out. */
const MOST_PUBLISHED = 1_000_000;

/** Functions that affect neither the choice of the counter nor how it counts. */
const BESIDE_COUNTING = ['key', 'cost', 'skip', 'count', 'message', 'body', 'priority', 'onMissingKey'];
/** Options that don't matter for reading. */
const OF_THE_APP = ['name', 'prefetch', 'hook'];

export function publishedText(
  catalog: LimitCatalog,
  registry: LimitRegistry,
  { options, ipv6Prefix, regions }: RateLimitSettings,
  version: string,
  identities: PublishedApp['identities'],
): string {
  const named = new Map(registry.named.map((limit) => [limit.rule, limit]));
  const limits: PublishedLimitInfo[] = [];
  let length = 0;
  for (const entry of catalog.entries()) {
    const limit = named.get(entry.rule);
    const info = catalog.info(entry);
    const definition = limit && definitionOf(limit, options.defaults);
    const place = limit?.declaration.everywhere === true ? ('limits' as const) : ('define' as const);
    const published = definition === undefined ? { info } : { info, definition, place };
    length += JSON.stringify(published).length;
    if (length > MOST_PUBLISHED) break;
    limits.push(published);
  }
  const app: PublishedApp = { version, ipv6Prefix, identities, region: regions?.name, limits };
  return JSON.stringify(app);
}

/** Commands that publish a text. A known text is only confirmed, unless Redis may have lost it. */
export function publishing({ keys }: ConsoleRedis, text: string, now: number, isKnown: boolean): Command[] {
  const id = createHash('sha256').update(text).digest('hex').slice(0, 16);
  return [
    isKnown ? ['expire', keys.limits(id), KEPT_SECONDS] : ['set', keys.limits(id), text, 'EX', KEPT_SECONDS],
    ['zadd', keys.limitSets, now, id],
    ['zremrangebyrank', keys.limitSets, 0, -1 - MOST_SETS],
    ['expire', keys.limitSets, KEPT_SECONDS],
  ];
}

/** Reads the limits that instances have published; `undefined` if there are none. Rejects with `RateLimitStoreError`. */
export async function readPublished(redis: ConsoleRedis): Promise<ReadApp | undefined> {
  const { keys } = redis;
  const [reply] = await redis.run([['zrange', keys.limitSets, 0, -1, 'WITHSCORES']]);
  const sets = pairsOf((reply as unknown[]).flat()).toReversed();
  const newest = Number(sets[0]?.[1] ?? 0);
  const current = sets.filter(([, at]) => Number(at) >= newest - REPLACED_MS);
  const texts = await redis.run(current.map(([id]): Command => ['get', keys.limits(id)]));
  const apps = texts.flatMap((text) => (typeof text === 'string' ? [JSON.parse(text) as PublishedApp] : []));
  const [first] = apps;
  if (first === undefined) return undefined;
  const limits = new Map<string, PublishedLimitInfo>();
  for (const app of apps)
    for (const limit of app.limits) if (!limits.has(limit.info.name)) limits.set(limit.info.name, limit);
  return { ...first, limits: [...limits.values()], at: newest };
}

/** The options for finding the counters of a limit; `undefined` if they aren't sufficient. */
function definitionOf({ definition, limit }: NamedLimit, defaults: object = {}): PublishedLimitInfo['definition'] {
  // It is counted in the app's processes.
  if (limit.instance) return undefined;
  const written: [string, unknown][] = [];
  for (const [option, value] of Object.entries({ ...defaults, ...definition } as Record<string, unknown>)) {
    if (value === undefined || OF_THE_APP.includes(option)) continue;
    if (isData(value)) written.push([option, value]);
    else if (!BESIDE_COUNTING.includes(option)) return undefined;
  }
  return Object.fromEntries(written);
}

function isData(value: unknown): boolean {
  if (value === null || ['string', 'number', 'boolean'].includes(typeof value) || value instanceof Date) return true;
  if (Array.isArray(value)) return value.every(isData);
  if (typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype) return false;
  return Object.values(value).every((each) => each === undefined || isData(each));
}
