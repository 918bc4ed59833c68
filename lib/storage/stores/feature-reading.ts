import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { Counter } from '../../engine/limits/counter.js';
import type { OpenCounter } from '../../engine/limits/estimates.js';
import type { KeptInMemory, MemoryBounds } from '../../engine/limits/limit-feature.js';
import type { Connection } from '../redis/connection.js';

/** What a feature can use of a store that counts in process. */
export interface MemoryParts {
  /** What the store keeps for all limits of the feature. */
  kept<Kept extends KeptInMemory>(keep: (bounds: MemoryBounds) => Kept): Kept;
  /** The time in whole microseconds. */
  now(): number;
  /** A counter as of now, without any estimates that have lapsed. It is only read. */
  open(counter: Counter): OpenCounter;
}

/** What a feature can use of a store that counts on Redis. */
export interface RedisParts {
  readonly client: Connection;
  readonly prefix: string;
  /** The best guess of the server's time, in whole microseconds. */
  now(): number;
  /** Asks the server for its time, in whole microseconds. Belongs into `guarded`. */
  time(): Promise<number>;
  /** Asks Redis only if it is connected, and waits no longer than the deadline. */
  guarded<T>(call: () => Promise<T>): Promise<T>;
}

/** Reads what a feature keeps about a limit, in each kind of store. */
export interface FeatureReading<T> {
  /** Its name in metrics. */
  readonly name: string;
  /** The counter to read, if `T` is a promise; absent if it reads all counters. */
  readonly counter?: Counter;
  inMemory(parts: MemoryParts): T;
  onRedis(parts: RedisParts): T;
  /** Asks a store of the app, which has its own methods for it. */
  elsewhere(store: object): T;
}

/** The method by which features read a store: a symbol, since stores of apps may have any other method. */
export const READ = Symbol('read');

/** A store, as far as features read it. */
export interface ReadableStore {
  [READ]?<T>(limit: CompiledLimit, reading: FeatureReading<T>): T;
}

/** Makes a store read what a feature keeps about a limit. */
export function read<T>(store: ReadableStore, limit: CompiledLimit, reading: FeatureReading<T>): T {
  return store[READ] === undefined ? reading.elsewhere(store) : store[READ](limit, reading);
}
