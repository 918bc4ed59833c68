import { randomUUID } from 'node:crypto';
import { type Cluster, Redis } from 'ioredis';
import { TestClock } from '../../../lib/testing/index.js';
import { type AlgorithmOptions, MemoryStore, RedisStore, type Store } from '../../../lib/index.js';
import {
  type CheckEntry,
  CompiledLimit,
  type LimitSettings,
  type StoreDecision,
} from '../../../lib/testing/store/index.js';
import { featuresOfOptions } from '../../../lib/storage/features/index.js';
import { createClient, isCluster } from '../../../lib/storage/redis/client.js';
import type { RedisCluster } from '../redis/redis-servers.js';
import { PATIENCE_MS } from '../redis/patience.mjs';

/** Where counters lie on Redis, what a charge is, and what features make of options: what specs need that ask a store without a limiter. */
export { featuresOfOptions, featureTerms } from '../../../lib/storage/features/index.js';
export { extraKeysOf, featureKeysOf, keyOf, overrideKeys } from '../../../lib/storage/stores/redis/keys.js';
export { chargeOf, chargesOf } from '../../../lib/storage/stores/store-decision.js';

/** A year after the epoch: times before that are negative, which Redis never tells. */
const EARLIEST = Date.UTC(1971) * 1000;

/** The kit's clock to the microsecond. It begins on an even, but not a round, moment. */
export class ManualClock extends TestClock {
  declare micros: number;
  /** Redis runs keys out on its own clock; an hour more keeps it from doing so under a clock that is moved. */
  readonly slackMs = 3_600_000;

  constructor() {
    super();
    this.micros = 1_790_000_123_456_789;
  }

  /** Milliseconds and parts of them, also backwards, but not to a time that no server has. */
  advanceMs(ms: number): void {
    this.micros = Math.max(EARLIEST, this.micros + Math.round(ms * 1000));
  }
}

/** The options with which an app uses an ioredis client as it is, and doesn't duplicate it. */
export const SENDS_ONCE = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 };

/** A connection, ready, to the server that all tests share. An app that is given it uses it as it is. */
export async function connectRedis({ enableAutoPipelining = false } = {}): Promise<Redis> {
  const url = process.env['TEST_REDIS_URL'];
  if (url === undefined) throw new Error('TEST_REDIS_URL is not set: the global set-up did not run');
  const redis = new Redis(url, { ...SENDS_ONCE, enableAutoPipelining, lazyConnect: true });
  await redis.connect();
  return redis;
}

/** A client of a Cluster, as the library makes it. Whoever made it ends it. */
export async function connectCluster({ nodes }: Pick<RedisCluster, 'nodes'>): Promise<Cluster> {
  const made = await createClient({ nodes });
  if (!isCluster(made)) throw new Error('made no client of a Cluster');
  made.on('error', () => undefined);
  return made;
}

/** A prefix that no other test uses, so that tests share one server. */
export function freshPrefix(): string {
  return `test-${process.pid}-${randomUUID().slice(0, 8)}`;
}

/** Every store that has to behave alike. */
export const storeKinds: Record<string, (clock: ManualClock, redis: Redis, prefix?: string) => Store> = {
  // It forgets nothing while a clock goes back and forth, however often its sweep comes by meanwhile.
  MemoryStore: (clock) => new MemoryStore({ clock: clock.now, slackMs: Infinity }),
  RedisStore: (clock, redis, prefix = freshPrefix()) =>
    new RedisStore(redis, { clock, prefix, timeoutMs: PATIENCE_MS }),
};

export function compile(options: AlgorithmOptions, name?: string): CompiledLimit {
  return new CompiledLimit(options, { location: 'test', name, featuresOfOptions });
}

/** Options of algorithms whose counters a store keeps. */
export type StoredOptions = Exclude<AlgorithmOptions, { algo: 'adaptive' }>;

/** How a limit takes over units from an earlier quota. */
export type CarryOver = NonNullable<LimitSettings['carry']>;

/** The tick of a limit's clock in microseconds: times within one are the same to it. */
export function tickOf({ parameters }: CompiledLimit): number {
  return 'scale' in parameters ? (parameters.scale as { tick: number }).tick : 1;
}

/** One check of a store, of one limit. */
export async function ask(
  store: Store,
  limit: CompiledLimit,
  { identity = 'ip:203.0.113.7', cost = 1, peek = false }: { identity?: string; cost?: number; peek?: boolean } = {},
): Promise<StoreDecision> {
  const [decisions] = await store.check([{ entries: [{ limit, identity, cost }], peek }]);
  return decisions![0]!;
}

/** A key outlives its state by so much, since the server may stall while it decides. */
const SPARE_MS = 1000;

/** How much longer than its state takes a key may live, where a step less is to be written then: by the design. */
export function slackMsOf(limit: CompiledLimit): number {
  if (!['gcra', 'token-bucket', 'leaky-bucket'].includes(limit.algorithm.name)) return SPARE_MS;
  return SPARE_MS + Math.min(limit.windowMs(0) / 8, 10_000);
}

/** What stores must agree on: all of a decision but who made it, and how it names a lease. */
export function comparable(decisions: StoreDecision[][]): Omit<StoreDecision, 'source'>[][] {
  return decisions.map((each) =>
    each.map(({ source: _, ticket, ...decision }) =>
      ticket === undefined || isLease(decision) ? decision : { ...decision, ticket },
    ),
  );
}

/** Limits whose name does not begin with their algorithm are no `concurrency` in these tests. */
function isLease({ limit }: { limit: string }): boolean {
  return limit.startsWith('concurrency');
}

export type { CheckEntry };
