import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { Counter } from '../limits/counter.js';
import type { KeptInMemory, MemoryBounds } from '../limits/limit-feature.js';
import type { RedisClient } from '../redis/client.js';

/** What a feature finds of a store that counts in process. */
export interface MemoryParts {
  /** What is kept for all limits of the feature. */
  kept<Kept extends KeptInMemory>(keep: (bounds: MemoryBounds) => Kept): Kept;
  /** The time in whole microseconds. */
  now(): number;
  /** Takes units of holds that have lapsed off a counter. */
  releaseLapsed(counter: Counter): void;
}

/** What a feature finds of a store that counts on Redis. */
export interface RedisParts {
  readonly client: RedisClient;
  readonly prefix: string;
  /** The best guess of the server's time, in whole microseconds. */
  now(): number;
  /** Asks Redis only if it is there, and waits no longer than the deadline. */
  guarded<T>(call: () => Promise<T>): Promise<T>;
  /** Takes units of holds that have lapsed off a counter. */
  releaseLapsed(counter: Counter): Promise<void>;
}

/** Reads what a feature keeps of a limit, in each kind of store. */
export interface FeatureReading<T> {
  /** What metrics call it. */
  readonly name: string;
  /** The counter of which it reads; then `T` is a promise. Nothing if it reads of all counters. */
  readonly counter?: Counter;
  inMemory(parts: MemoryParts): T;
  onRedis(parts: RedisParts): T;
  /** Asks a store of the app, which has methods of its own for it. */
  elsewhere(store: object): T;
}

/** Has a store read what a feature keeps of a limit. */
export function read<T>(
  store: { read?<T>(limit: CompiledLimit, reading: FeatureReading<T>): T },
  limit: CompiledLimit,
  reading: FeatureReading<T>,
): T {
  return store.read === undefined ? reading.elsewhere(store) : store.read(limit, reading);
}
