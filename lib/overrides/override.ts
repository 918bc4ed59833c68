import type { AlgorithmOptions } from '../algorithms/index.js';
import type { Duration } from '../algorithms/options.js';
import type { CandidateOptions } from '../config/common-limit-options.js';
import type { ChangeCause } from './change-cause.js';
import type { ChangedList } from './lists/list.js';

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
export type RatePatch<Algo extends AlgorithmOptions['algo'] = AlgorithmOptions['algo']> = PatchOf<OptionsOf<Algo>> & {
  /**
   * Another `candidate` beside the changed limit: what it leaves out is as the patch makes the limit. `null` for none.
   * @default the configured one, which stays as it is
   */
  candidate?: CandidateOptions | null;
  /** Another `ceiling`, of a limit that is within another one. */
  ceiling?: number;
  /** Another `lends`. */
  lends?: number;
};

/** Of which identities an override is told. */
export interface OverrideQuery {
  /** The key of an identity, such as `'tenant:acme'`, as `consume` takes it and a `KeyResolver` gives it. */
  key?: string;
}

/** Options of the end of an override. */
export interface ClearOptions extends ChangeCause {
  /**
   * The key of the override: of one identity, such as `'tenant:acme'`, or of all whose keys begin alike, `'tenant:*'`.
   * @default the override of all identities
   */
  key?: string;
}

/** Options of an override. */
export interface OverrideOptions extends ClearOptions {
  /**
   * How long the override is in force: milliseconds or a duration such as `'10m'`, at most 1 year, by the Redis server's clock.
   * Then what it replaced is in force again on every instance.
   * @default until it is cleared
   */
  expiresIn?: Duration;
}

/** Options of a change of a rate. */
export interface SetRateOptions extends OverrideOptions {
  /**
   * How counters take over the changed rate.
   * @default 'keep'
   */
  inherit?: InheritMode;
}

/** An override that is in force. */
export interface Override extends ChangeCause {
  /** The key that it was set for, such as `'tenant:acme'` or `'tenant:*'`; `undefined` for all identities. */
  key?: string;
  /** The number of the change that made it; grows with every change. */
  version: number;
  /** When it ends, in milliseconds since the epoch on the Redis server's clock; `undefined` without an end. */
  expiresAt: number | undefined;
}

/** A change of a limit's rate that is in force. */
export interface RateOverride extends Override {
  /** The options that replace the configured ones. */
  patch: RatePatch;
  /** The mode by which counters took over the changed rate. */
  inherit: InheritMode;
}

/**
 * From where something holds: as configured, by the policy, by the override of all identities of the limit, of those whose keys
 * begin alike, or of one key.
 */
export type OverrideSource = 'configured' | 'policy' | 'limit' | 'pattern' | 'key';

/** The rate of a limit now. */
export interface CurrentRate {
  /** The limit's name. */
  name: string;
  /** The algorithm and its options: those of the override, else the configured ones. */
  options: AlgorithmOptions;
  /** The same of its candidate; absent if it has none. */
  candidate?: AlgorithmOptions;
  /** From where they are. */
  source: OverrideSource;
  /** The override that is in force, or `undefined` while the limit is as configured or as the policy says. */
  override: RateOverride | undefined;
  /** With source `'policy'`: where the policy says it, such as `'limits.yaml:12:3 limits.api'`. */
  policy?: string;
}

/** A page of the overrides of a limit. */
export interface ListOverridesOptions {
  /** The `next` of the page before. */
  cursor?: string;
  /**
   * The most overrides of a page, at most 1,000.
   * @default 100
   */
  count?: number;
}

/** What is overridden for one key of a limit. */
export interface KeyOverrides {
  /** The key: of one identity, or of all whose keys begin alike, with a trailing star. */
  key: string;
  /** The override of its rate, if there is one. */
  rate: RateOverride | undefined;
  /** The override of its mode, if there is one. */
  mode: ModeOverride | undefined;
}

/** Some overrides of a limit, in the order of their keys. */
export interface OverridePage {
  /** At most as many as were asked for. */
  overrides: KeyOverrides[];
  /** The `cursor` of the next page; `undefined` for the last one. */
  next: string | undefined;
}

/** `'enforce'` refuses, `'shadow'` counts and reports and never refuses, `'off'` does not ask the limit at all. */
export type LimitMode = 'enforce' | 'shadow' | 'off';

/** A change of a limit's mode that is in force. */
export interface ModeOverride extends Override {
  /** The mode that replaces the configured one. */
  mode: LimitMode;
}

/** The mode of a limit now. */
export interface CurrentMode {
  /** The limit's name. */
  name: string;
  /** That of the override, else the configured one. */
  mode: LimitMode;
  /** From where it is. */
  source: OverrideSource;
  /** The override that is in force, or `undefined` while the mode is as configured or as the policy says. */
  override: ModeOverride | undefined;
  /** With source `'policy'`: where the policy says it, such as `'limits.yaml:12:3 limits.api'`. */
  policy?: string;
}

/** Which changes are asked for. */
export interface ChangesOptions {
  /**
   * The name of a limit.
   * @default all limits
   */
  limit?: string;
  /**
   * How many of the last changes, at most 1,000.
   * @default 100
   */
  last?: number;
}

/** What a change made of one override; `undefined` where there is none. */
interface ChangedOf<Kind extends 'rate' | 'mode', T> {
  kind: Kind;
  /** The limit's name. */
  limit: string;
  /** The key that it is for; `undefined` for all identities. */
  key?: string;
  before: T | undefined;
  after: T | undefined;
}

/** What a change made of a rate. */
export type ChangedRate = ChangedOf<'rate', RateOverride>;

/** What a change made of a mode. */
export type ChangedMode = ChangedOf<'mode', ModeOverride>;

/** A change in the history. */
export interface RecordedChange extends ChangeCause {
  /** Its number: each change has the next one. */
  version: number;
  /** When it was made, in milliseconds since the epoch on the Redis server's clock. */
  at: number;
  /** For a rollback: the version that it went back to. */
  rollbackTo?: number;
  /** What it changed: one override or entry, or, for a rollback, all that were changed since. */
  overrides: (ChangedRate | ChangedMode | ChangedList)[];
}

export const LIMIT_MODES: readonly LimitMode[] = ['enforce', 'shadow', 'off'];

export const INHERIT_MODES: readonly InheritMode[] = ['keep', 'proportional', 'additive', 'reset'];
