import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { Counter } from '../../engine/limits/counter.js';
import type { OpenCounter } from '../../engine/limits/estimates.js';
import type { KeptInMemory, MemoryBounds } from '../../engine/limits/limit-feature.js';
import type { Connection } from '../redis/connection.js';

/** The parts of a store in memory that a feature can use. */
export interface MemoryParts {
  /** The data that the store keeps for all limits of the feature. */
  kept<Kept extends KeptInMemory>(keep: (bounds: MemoryBounds) => Kept): Kept;
  /** The time in whole microseconds. */
  now(): number;
  /** The current state of a counter, without any lapsed estimates. Read-only. */
  open(counter: Counter): OpenCounter;
}

/** The parts of a store on Redis that a feature can use. */
export interface RedisParts {
  readonly client: Connection;
  readonly prefix: string;
  /** The best guess of the server's time, in whole microseconds. */
  now(): number;
  /** Requests the time of the server, in whole microseconds. Call it inside `guarded`. */
  time(): Promise<number>;
  /** Calls Redis only if it is connected, and waits no longer than the deadline. */
  guarded<T>(call: () => Promise<T>): Promise<T>;
}

/** Reads the data that a feature keeps about a limit, for each kind of store. */
export interface FeatureReading<T> {
  /** Its name in metrics. */
  readonly name: string;
  /** The counter to read if `T` is a promise; absent to read all counters. */
  readonly counter?: Counter;
  inMemory(parts: MemoryParts): T;
  onRedis(parts: RedisParts): T;
  /** Reads from an app's store, through the method that it has for this. */
  elsewhere(store: object): T;
}

/** The method that features use to read a store: a symbol, since an app's store may have a method of any name. */
export const READ = Symbol('read');

/** The part of a store that features read from. */
export interface ReadableStore {
  [READ]?<T>(limit: CompiledLimit, reading: FeatureReading<T>): T;
}

/** Reads the data that a feature keeps about a limit. */
export function read<T>(store: ReadableStore, limit: CompiledLimit, reading: FeatureReading<T>): T {
  return store[READ] === undefined ? reading.elsewhere(store) : store[READ](limit, reading);
}
