import { Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { isRedisConnection, wrongRedis } from '../../app/config/redis-option.js';
import { configError, RateLimitArgumentError, RateLimitStoreError } from '../../engine/errors/errors.js';
import { redisMessages } from '../../engine/errors/messages/redis.js';
import { throttlerStorageMessages } from '../../engine/errors/messages/throttler-storage.js';
import type { Counter } from '../../engine/limits/counter.js';
import { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { checkValue, duration, knownOptions, wholeNumber, wrongOption } from '../../engine/options/check-options.js';
import { text } from '../../engine/options/kinds.js';
import type { Duration } from '../../engine/options/values.js';
import { connectionTo, isOwn } from '../../nest/store.providers.js';
import { ignoreConnectionErrors, type RedisConnection } from '../../storage/redis/client.js';
import { withDeadline } from '../../storage/redis/deadline.js';
import type { Connection } from '../../storage/redis/connection.js';
import { addressesOf, connectionReason } from '../../storage/redis/errors.js';
import { Circuits, type StoreReport } from '../../storage/stores/layers/circuits.js';
import type { RedisStoreOptions } from '../../storage/stores/redis/redis.store.js';
import { type Hit, LocalHits, RedisHits, type ThrottlerRecord } from './hits.js';

/** The options of `SluiceThrottlerStorage`. */
export interface SluiceThrottlerStorageOptions {
  /**
   * Where hits are counted: a URL, ioredis options (also for Sentinel), a connection of ioredis or an open client of node-redis (which
   * stay open when the app closes), or `{ nodes, options }` for a Cluster.
   */
  redis: RedisConnection;
  /**
   * How long a hit may take on Redis before this process counts it: milliseconds or a duration such as `'250ms'`, at most 1 hour.
   * @default 250
   */
  timeout?: Duration | undefined;
  /**
   * The prefix of all keys on Redis, without braces.
   * @default 'sluice'
   */
  prefix?: string | undefined;
  /**
   * Maximum number of keys that this process counts while Redis fails.
   * @default 100_000
   */
  maxKeys?: number | undefined;
  /** @internal The time on Redis and in process, in microseconds, for tests. */
  clock?: RedisStoreOptions['clock'];
}

const LOCATION = 'SluiceThrottlerStorage';
const logger = new Logger(LOCATION);
const OPTIONS = ['redis', 'timeout', 'prefix', 'maxKeys', 'clock'] as const;
const PREFIX = text('a string that is not empty and holds no braces', '^[^{}]+$');
const MAX_TIMEOUT_MS = 3_600_000;
/** Larger numbers would be no longer exact on Redis. */
const MOST = 2 ** 52;

/** Where hits are counted, once it is known. */
interface Place {
  readonly hits: RedisHits;
  readonly circuits: Circuits;
}

/**
 * A `ThrottlerStorage` for @nestjs/throttler that counts on Redis: each hit in one atomic call, so never more than the limit is allowed.
 * While Redis fails, each process counts in memory. Nest connects it and closes it with the app.
 *
 * @example
 * ```ts
 * ThrottlerModule.forRoot({
 *   throttlers: [{ ttl: 60_000, limit: 100 }],
 *   storage: new SluiceThrottlerStorage({ redis: 'redis://localhost:6379' }),
 * });
 * ```
 */
export class SluiceThrottlerStorage implements OnModuleInit, OnModuleDestroy {
  private readonly settings: {
    readonly redis: RedisConnection;
    readonly timeoutMs: number;
    readonly prefix: string;
    readonly clock: RedisStoreOptions['clock'];
  };
  private readonly local: LocalHits;
  /** Names the counters of all keys. Nothing counts by its algorithm. */
  private readonly limit = new CompiledLimit(
    { algo: 'sliding-log', rate: 1, interval: 1000 },
    { location: LOCATION, namespace: 'throttler=' },
  );
  private place: Place | undefined;
  private opening: Promise<Place> | undefined;
  private isClosed = false;
  /** The number of hits that Redis has answered. */
  private answered = 0;
  /** True from a hit that timed out while Redis answered no other one, or wasn't connected yet, until Redis answers. */
  private isSilent = false;
  private isProbing = false;

  /** Reads the options; it connects when the app starts, or with the first hit. Throws `RateLimitConfigError`. */
  constructor(options: SluiceThrottlerStorageOptions) {
    const given = knownOptions<SluiceThrottlerStorageOptions>(LOCATION, options, OPTIONS);
    const { redis, timeout = 250, prefix = 'sluice', maxKeys = 100_000, clock } = given;
    if (!isRedisConnection(redis)) throw configError('SLUICE_INVALID_REDIS', wrongRedis(LOCATION, redis));
    const timeoutMs = duration(LOCATION, 'timeout', timeout) / 1000;
    if (timeoutMs > MAX_TIMEOUT_MS) {
      throw wrongOption(LOCATION, 'timeout', timeout, 'at most 1 hour');
    }
    checkValue(LOCATION, 'prefix', prefix, PREFIX);
    this.local = new LocalHits(wholeNumber(LOCATION, 'maxKeys', maxKeys));
    this.settings = { redis, timeoutMs, prefix, clock };
  }

  /**
   * Counts a hit, as throttler's guard calls it. Times are in milliseconds here, and in seconds in the result. Rejects with
   * `RateLimitArgumentError` if a time or the limit isn't a number, and with `RateLimitConfigError` if the option `redis` turns out to be
   * unusable.
   */
  async increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<ThrottlerRecord> {
    // Plain JavaScript may pass no name.
    const name: unknown = throttlerName;
    const hit = {
      key,
      name: String(name),
      ttl: Math.max(0, bounded('ttl', ttl)),
      limit: bounded('limit', limit),
      block: Math.max(0, bounded('blockDuration', blockDuration)),
    };
    // Throttler's guard counts a request's throttlers one after the other: only the first of them waits.
    if (this.isClosed || (this.isSilent && this.place === undefined)) return this.here(hit);
    try {
      const place = this.place ?? (await withDeadline(this.open(), this.settings.timeoutMs));
      const ask = () => this.onRedis(place, hit);
      if (!this.isSilent) return await ask();
      if (!this.isProbing) this.probe(ask);
      return this.here(hit);
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
      if (this.place === undefined) this.isSilent = true;
      return this.here(hit);
    }
  }

  /** Called by Nest: connects. The app starts without Redis if it can't be reached. */
  async onModuleInit(): Promise<void> {
    if (!this.isClosed) await this.open();
  }

  /** Called by Nest: closes the connection. */
  onModuleDestroy(): Promise<void> {
    return this.close();
  }

  /** Closes the connection, unless the app made it. Hits are counted in process from then on. */
  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    const place = await this.opening?.catch(() => undefined);
    place?.circuits.close();
    await place?.hits.close();
    this.local.clear();
  }

  private async onRedis({ hits, circuits }: Place, hit: Hit): Promise<ThrottlerRecord> {
    const counter = { limit: this.limit, identity: hit.key };
    const { answered } = this;
    try {
      const record = await asked(circuits, counter, () => hits.increment(counter, hit));
      this.answered++;
      this.isSilent = false;
      return record;
    } catch (error) {
      const isLate = error instanceof RateLimitStoreError && error.code === 'SLUICE_STORE_TIMEOUT';
      if (isLate && answered === this.answered) this.isSilent = true;
      throw error;
    }
  }

  /** Sends a hit that nobody waits for, which shows if Redis answers again. */
  private probe(ask: () => Promise<unknown>): void {
    this.isProbing = true;
    ask()
      .catch(() => undefined)
      .finally(() => (this.isProbing = false));
  }

  private here(hit: Hit): ThrottlerRecord {
    const { clock } = this.settings;
    return this.local.increment(hit, clock === undefined ? Date.now() : Math.floor(clock.now() / 1000));
  }

  private open(): Promise<Place> {
    return (this.opening ??= this.connect().finally(() => (this.isSilent = false)));
  }

  private async connect(): Promise<Place> {
    const { redis, timeoutMs, prefix, clock } = this.settings;
    const connection = (await connectionTo(redis, timeoutMs, LOCATION))!;
    const release = ignoreConnectionErrors(connection);
    const ownsClient = isOwn(connection, redis);
    const hits = new RedisHits(connection, {
      prefix,
      timeoutMs,
      ownsClient,
      ...(clock && { clock }),
      ...(ownsClient ? {} : { release }),
    });
    const circuits = new Circuits(hits, (news) => reportNews(news, connection));
    const place = { hits, circuits };
    try {
      await hits.open();
    } catch (error) {
      circuits.absent(error);
    }
    this.place = place;
    return place;
  }
}

/** While no call has failed recently, the circuits only hear of failures. */
async function asked(
  circuits: Circuits,
  counter: Counter,
  call: () => Promise<ThrottlerRecord>,
): Promise<ThrottlerRecord> {
  if (!circuits.isHealthy) return circuits.ask([counter], call);
  try {
    return await call();
  } catch (error) {
    // A circuit that opens in between has an error of its own.
    await circuits.failed([counter], error);
    throw error;
  }
}

/** A number that Redis can add to its time. Redis itself would fail with a wrong one, which looks like an outage. */
function bounded(name: string, value: unknown): number {
  const number = typeof value === 'bigint' ? NaN : Number(value);
  if (Number.isNaN(number)) throw new RateLimitArgumentError(throttlerStorageMessages.wrongNumber(name, value));
  return Math.min(number, MOST);
}

/** Logs once when Redis, a node or a slot of it fails, and once when it is back. */
function reportNews(news: StoreReport, connection: Connection): void {
  if (news.state === 'unconfirmed' || news.state === 'late') return;
  if (news.state === 'replaced') return logger.log(throttlerStorageMessages.replaced(news.node));
  const where = news.slot !== undefined ? `slot ${news.slot}` : news.node === undefined ? 'Redis' : `node ${news.node}`;
  if (news.state === 'recovered') return logger.log(throttlerStorageMessages.recovered(where));
  const reason = redisMessages.withAdvice(connectionReason(news.error), addressesOf(connection));
  logger.error(throttlerStorageMessages.failing(where, reason));
}
