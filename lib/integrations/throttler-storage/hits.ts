import { RateLimitStoreError } from '../../engine/errors/errors.js';
import { throttlerStorageMessages } from '../../engine/errors/messages/throttler-storage.js';
import type { Counter } from '../../engine/limits/counter.js';
import { plainIdentity } from '../../engine/limits/identity.js';
import { BoundedMap, Kept } from '../../engine/util/bounded-maps.js';
import type { Connection } from '../../storage/redis/connection.js';
import { withDeadline } from '../../storage/redis/deadline.js';
import { RedisStore, type RedisStoreOptions } from '../../storage/stores/redis/redis.store.js';
import { HITS_SCRIPT } from './hits-script.generated.js';

/** The result of a hit for throttler's guard: its `ThrottlerStorageRecord`. Times are in seconds, rounded up. */
export interface ThrottlerRecord {
  /** Hits that count now, the rejected one included. */
  totalHits: number;
  /** Seconds until the reported window ends. */
  timeToExpire: number;
  /** True if the hit is rejected. */
  isBlocked: boolean;
  /** Seconds until a hit can be allowed again; 0 if this one is. */
  timeToBlockExpire: number;
}

/** A hit and its terms. Times are in milliseconds. */
export interface Hit {
  readonly key: string;
  /** The name of the throttler. */
  readonly name: string;
  /** How long a hit counts. */
  readonly ttl: number;
  readonly limit: number;
  /** How long a block lasts; 0 blocks nobody, and rejected hits don't count. */
  readonly block: number;
}

/** A record from times in milliseconds. */
function recordOf(hits: number, windowMs: number, isBlocked: boolean, blockMs: number): ThrottlerRecord {
  return {
    totalHits: hits,
    timeToExpire: Math.ceil(windowMs / 1000),
    isBlocked,
    timeToBlockExpire: Math.ceil(blockMs / 1000),
  };
}

/** A key that expires at once would be gone before a server that stalls has counted. */
const SLACK_MS = 1000;

/** Counts hits on Redis. Its connection, deadline and slots are those of the store for limits; its script is its own. */
export class RedisHits extends RedisStore {
  private readonly time: RedisStoreOptions['clock'];

  constructor(connection: Connection, options: RedisStoreOptions & { readonly prefix: string }) {
    super(connection, { ...options, script: HITS_SCRIPT });
    this.time = options.clock;
  }

  /** Counts a hit on a counter. Rejects with `RateLimitStoreError`. */
  async increment(counter: Counter, { name, ttl, limit, block }: Hit): Promise<ThrottlerRecord> {
    const { calls, prefix, slots, time, timeoutMs } = this;
    // No namespace of limits contains an equals sign.
    const key = `${prefix}:{${plainIdentity(counter.identity)}}:throttler=${plainIdentity(name)}`;
    const now = time === undefined ? 0 : Math.floor(time.now() / 1000);
    const args = [ttl, limit, block, time?.slackMs ?? SLACK_MS, now].map(String);
    const node = slots?.nodeOf(counter);
    let reply: unknown;
    try {
      reply = await withDeadline(calls.run({ keys: [key], args: () => args }, node), timeoutMs);
    } catch (error) {
      // Only a call without an answer rejects with such an error.
      if (error instanceof RateLimitStoreError) calls.noteSilence();
      const failure = calls.failure(error, node);
      throw node === undefined || slots === undefined ? failure : slots.blame(node, failure, counter);
    }
    return read(reply);
  }
}

function read(reply: unknown): ThrottlerRecord {
  const numbers = Array.isArray(reply) ? reply.map(Number) : [];
  const [hits, windowMs, isBlocked, blockMs] = numbers;
  if (numbers.length !== 4 || numbers.some((each) => !Number.isSafeInteger(each))) {
    throw new RateLimitStoreError(throttlerStorageMessages.wrongReply(reply));
  }
  return recordOf(hits!, windowMs!, isBlocked === 1, blockMs!);
}

/** The bytes of a key without hits, and of each hit. */
const KEY_BYTES = 300;
const HIT_BYTES = 8;
const BYTES_A_KEY = 1000;

/** The hits of a key. `lua/throttler-hits.lua` is the twin on Redis. */
class Hits extends Kept {
  /** When each hit expires, in ascending order. */
  private expiries: number[] = [];
  private windowEnd = 0;
  /** 0: no block. */
  private blockEnd = 0;

  get count(): number {
    return this.expiries.length;
  }

  /** True while a block lasts; blocked keys are evicted last. */
  isBlockedAt(now: number): boolean {
    return this.blockEnd > now;
  }

  increment({ ttl, limit, block }: Hit, now: number): ThrottlerRecord {
    this.forgetUntil(now);
    if (this.windowEnd <= now) this.windowEnd = now + ttl;
    const windowMs = this.windowEnd - now;
    if (block <= 0) {
      const { count } = this;
      if (count >= limit) return recordOf(count + 1, windowMs, true, (this.expiries[0] ?? this.windowEnd) - now);
      this.add(now + ttl);
      return recordOf(count + 1, windowMs, false, 0);
    }
    if (this.blockEnd > 0 && this.blockEnd <= now) {
      this.expiries = [];
      this.blockEnd = 0;
    }
    if (this.blockEnd === 0) {
      this.add(now + ttl);
      if (this.count > limit) this.blockEnd = now + block;
    }
    const isBlocked = this.blockEnd > 0;
    return recordOf(this.count, windowMs, isBlocked, isBlocked ? this.blockEnd - now : 0);
  }

  private forgetUntil(now: number): void {
    const { expiries } = this;
    if (expiries.length === 0 || expiries[0]! > now) return;
    const first = expiries.findIndex((expiry) => expiry > now);
    if (first === -1) this.expiries = [];
    else expiries.splice(0, first);
  }

  private add(expiry: number): void {
    const { expiries } = this;
    let at = expiries.length;
    while (at > 0 && expiries[at - 1]! > expiry) at--;
    if (at === expiries.length) expiries.push(expiry);
    else expiries.splice(at, 0, expiry);
  }
}

/** Counts hits in process while Redis fails. Keys that weren't hit for the longest time are evicted first. */
export class LocalHits {
  private readonly kept: BoundedMap<Hits>;

  constructor(maxKeys: number) {
    this.kept = new BoundedMap(maxKeys, Math.max(16_000_000, maxKeys * BYTES_A_KEY));
  }

  /** Counts a hit at a time in milliseconds. */
  increment(hit: Hit, now: number): ThrottlerRecord {
    const key = `${hit.name.length}:${hit.name}${hit.key}`;
    const hits = this.kept.get(key) ?? new Hits(key);
    const record = hits.increment(hit, now);
    this.kept.put(hits, KEY_BYTES + 2 * key.length + HIT_BYTES * hits.count, hits.isBlockedAt(now));
    return record;
  }

  clear(): void {
    this.kept.clear();
  }
}
