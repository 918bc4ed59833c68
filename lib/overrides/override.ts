import type { AlgorithmOptions } from '../algorithms/index.js';
import type { Duration } from '../algorithms/options.js';

/**
 * How counters take over a changed rate: `'keep'` leaves it to the algorithm, whose page describes it; `'proportional'`
 * multiplies the remaining units as the quota grows, `'additive'` adds as many as the quota grew by. Under a smaller quota, used
 * units stay used in all three. `'reset'` starts all counters of the limit anew.
 */
export type InheritMode = 'keep' | 'proportional' | 'additive' | 'reset';

type OptionsOf<Algo extends AlgorithmOptions['algo']> = Extract<AlgorithmOptions, { algo: Algo }>;

type PatchOf<Options> = Options extends { algo: string } ? Partial<Omit<Options, 'algo'>> : never;

/**
 * Options of a limit's algorithm that replace the configured ones, such as `{ rate: 50 }` or
 * `{ rate: 10, interval: '1s', burst: 40 }`: any of them, in the units of the configuration. The others stay as configured. The
 * algorithm itself and the options of every limit (`name`, `key`, `cost`, ...) cannot be changed.
 */
export type RatePatch<Algo extends AlgorithmOptions['algo'] = AlgorithmOptions['algo']> = PatchOf<OptionsOf<Algo>>;

/** Options of a change of a rate. */
export interface SetRateOptions {
  /**
   * How long the change is in force: milliseconds or a duration such as `'10m'`, at most 1 year, by the Redis server's clock.
   * Then the configured rate is in force again on every instance.
   * @default until it is cleared
   */
  expiresIn?: Duration;
  /**
   * How counters take over the changed rate.
   * @default 'keep'
   */
  inherit?: InheritMode;
}

/** A change of a limit's rate that is in force. */
export interface RateOverride {
  /** The options that replace the configured ones. */
  patch: RatePatch;
  /** Grows by 1 with every change of the limit's rate by any instance. */
  version: number;
  /** The mode by which counters took over the changed rate. */
  inherit: InheritMode;
  /** When it ends, in milliseconds since the epoch on the Redis server's clock; `undefined` without an end. */
  expiresAt: number | undefined;
}

/** The rate of a limit now. */
export interface CurrentRate {
  /** The limit's name. */
  name: string;
  /** The algorithm and its options: those of the override, else the configured ones. */
  options: AlgorithmOptions;
  /** The override that is in force, or `undefined` while the limit is as configured. */
  override: RateOverride | undefined;
}

export const INHERIT_MODES: readonly InheritMode[] = ['keep', 'proportional', 'additive', 'reset'];
