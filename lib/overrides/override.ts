import type { AlgorithmOptions } from '../algorithms/index.js';
import type { Duration } from '../algorithms/options.js';

/**
 * What happens to what was counted when a rate changes: `'keep'` leaves it to the algorithm, whose page says what it does
 * under other parameters, `'proportional'` lets what is left grow with the quota, `'additive'` by as much as the quota grew;
 * under a smaller quota what is used stays used in all three. `'reset'` starts all counters of the limit anew.
 */
export type InheritMode = 'keep' | 'proportional' | 'additive' | 'reset';

type OptionsOf<Algo extends AlgorithmOptions['algo']> = Extract<AlgorithmOptions, { algo: Algo }>;

type PatchOf<Options> = Options extends { algo: string } ? Partial<Omit<Options, 'algo'>> : never;

/**
 * The options of a limit's algorithm that stand in for the configured ones, such as `{ rate: 50 }` or
 * `{ rate: 10, interval: '1s', burst: 40 }`: any of them, in the units of the configuration. What it leaves out stays as
 * configured. The algorithm itself and what every limit has (`name`, `key`, `cost`, ...) cannot be changed.
 */
export type RatePatch<Algo extends AlgorithmOptions['algo'] = AlgorithmOptions['algo']> = PatchOf<OptionsOf<Algo>>;

/** How a rate is changed. */
export interface SetRateOptions {
  /**
   * How long the change holds: milliseconds or a duration such as `'10m'`, at most 1 year, by the Redis server's clock.
   * Then the configured rate holds again on every instance.
   * @default until it is cleared
   */
  expiresIn?: Duration;
  /**
   * What happens to what was counted.
   * @default 'keep'
   */
  inherit?: InheritMode;
}

/** A change of a limit's rate that is in force. */
export interface RateOverride {
  /** The options that stand in for the configured ones. */
  patch: RatePatch;
  /** Grows by 1 with every change of the limit's rate, by whichever instance. */
  version: number;
  /** What was done with what had been counted. */
  inherit: InheritMode;
  /** When it ends, in milliseconds since the epoch on the Redis server's clock; `undefined` if it holds until it is cleared. */
  expiresAt: number | undefined;
}

/** The rate that a limit has now. */
export interface CurrentRate {
  /** The limit's name. */
  name: string;
  /** The algorithm and its options that decide now: the configured ones, with the override's in their stead. */
  options: AlgorithmOptions;
  /** The change that is in force, or `undefined` while the limit is as configured. */
  override: RateOverride | undefined;
}

export const INHERIT_MODES: readonly InheritMode[] = ['keep', 'proportional', 'additive', 'reset'];
