import type { AlgorithmOptions } from '../../engine/algorithms/index.js';
import type { Duration } from '../../engine/options/values.js';
import type { FeaturePatch, LiveFeatureOptions } from '../../storage/features/index.js';
import type { LimitMode } from '../../engine/limits/limit-settings.js';
import type { ChangeCause } from './change-cause.js';
import type { ChangedList } from './lists/list.js';

/**
 * Determines how counters carry over to a changed rate. `'keep'` leaves it to the algorithm (see its page), `'proportional'` scales the
 * remaining units with the quota, and `'additive'` adds the difference between the quotas. If the quota shrinks, used units stay used in
 * all three modes. `'reset'` restarts all counters of the limit from zero.
 */
export type InheritMode = 'keep' | 'proportional' | 'additive' | 'reset';

type OptionsOf<Algo extends AlgorithmOptions['algo']> = Extract<AlgorithmOptions, { algo: Algo }>;

type PatchOf<Options> = Options extends { algo: string } ? Partial<Omit<Options, 'algo'>> : never;

/**
 * The algorithm options of a limit to replace, such as `{ rate: 50 }` or `{ rate: 10, interval: '1s', burst: 40 }`, in the units of the
 * configuration. All others stay as configured. The algorithm itself and the options that every limit has (`name`, `key`, `cost`, ...)
 * cannot be changed.
 */
export type RatePatch<Algo extends AlgorithmOptions['algo'] = AlgorithmOptions['algo']> = PatchOf<OptionsOf<Algo>> &
  FeaturePatch &
  LiveFeatureOptions;

/** Selects the key whose overrides are queried. */
export interface OverrideQuery {
  /** A key such as `'tenant:acme'`, in the form that `consume` takes and a `KeyResolver` returns. */
  key?: string;
}

/** Options for ending an override. */
export interface ClearOptions extends ChangeCause {
  /**
   * The key of the override: one key, such as `'tenant:acme'`, or all keys with a prefix, `'tenant:*'`.
   * @default the override of all identities
   */
  key?: string;
}

/** Options of an override. */
export interface OverrideOptions extends ClearOptions {
  /**
   * The time until the override expires, by the Redis server's clock: milliseconds or a duration such as `'10m'`, at most 1 year. After
   * that, the previous value applies again on every instance.
   * @default until it is cleared
   */
  expiresIn?: Duration;
}

/** Options of a change of a rate. */
export interface SetRateOptions extends OverrideOptions {
  /**
   * Determines how counters carry over to the changed rate.
   * @default 'keep'
   */
  inherit?: InheritMode;
}

/** A current override. */
export interface Override extends ChangeCause {
  /** The key it was set for, such as `'tenant:acme'` or `'tenant:*'`; `undefined` for all keys. */
  key?: string;
  /** The version of the change that made it. Every change increases the version. */
  version: number;
  /** The time at which it expires, in milliseconds since the epoch by the Redis server's clock; `undefined` if it does not expire. */
  expiresAt: number | undefined;
}

/** A current override of a limit's rate. */
export interface RateOverride extends Override {
  /** The options that replace the configured ones. */
  patch: RatePatch;
  /** The way in which counters carried over to the changed rate. */
  inherit: InheritMode;
}

/**
 * The source of a setting: the configuration, the policy, or the override of all keys of the limit, of keys with a prefix, or of one key.
 */
export type OverrideSource = 'configured' | 'policy' | 'limit' | 'pattern' | 'key';

/** The current rate of a limit. */
export interface CurrentRate {
  /** The limit's name. */
  name: string;
  /** The algorithm and its options: those of the override, or else the configured ones. */
  options: AlgorithmOptions;
  /** The algorithm options of its candidate; absent if it has none. */
  candidate?: AlgorithmOptions;
  /** The source of these options. */
  source: OverrideSource;
  /** The current override; `undefined` if the configuration or the policy applies. */
  override: RateOverride | undefined;
  /** The place in the policy, such as `'limits.yaml:12:3 limits.api'`, if the source is `'policy'`. */
  policy?: string;
}

/** Selects a page of the overrides of a limit. */
export interface ListOverridesOptions {
  /** The `next` of the previous page. */
  cursor?: string;
  /**
   * The maximum number of overrides per page, at most 1,000.
   * @default 100
   */
  count?: number;
}

/** The overrides for one key of a limit. */
export interface KeyOverrides {
  /** A key, or a prefix followed by a star. */
  key: string;
  /** The override of its rate, if any. */
  rate: RateOverride | undefined;
  /** The override of its mode, if any. */
  mode: ModeOverride | undefined;
}

/** A page of overrides of a limit, in the order of their keys. */
export interface OverridePage {
  /** At most the requested number of overrides. */
  overrides: KeyOverrides[];
  /** The `cursor` of the next page; `undefined` for the last one. */
  next: string | undefined;
}

/** A current override of a limit's mode. */
export interface ModeOverride extends Override {
  /** The mode that replaces the configured one. */
  mode: LimitMode;
}

/** The current mode of a limit. */
export interface CurrentMode {
  /** The limit's name. */
  name: string;
  /** The mode of the override, or else the configured one. */
  mode: LimitMode;
  /** The source of the mode. */
  source: OverrideSource;
  /** The current override; `undefined` if the configuration or the policy applies. */
  override: ModeOverride | undefined;
  /** The place in the policy, such as `'limits.yaml:12:3 limits.api'`, if the source is `'policy'`. */
  policy?: string;
}

/** Selects changes. */
export interface ChangesOptions {
  /**
   * The name of a limit.
   * @default all limits
   */
  limit?: string;
  /**
   * The number of latest changes to return, at most 1,000.
   * @default 100
   */
  last?: number;
}

/** One override before and after a change; `undefined` if it did not exist. */
interface ChangedOf<Kind extends 'rate' | 'mode', T> {
  kind: Kind;
  /** The limit's name. */
  limit: string;
  /** The key of the override; `undefined` for all keys. */
  key?: string;
  before: T | undefined;
  after: T | undefined;
}

/** A rate before and after a change. */
export type ChangedRate = ChangedOf<'rate', RateOverride>;

/** A mode before and after a change. */
export type ChangedMode = ChangedOf<'mode', ModeOverride>;

/** A change in the history. */
export interface RecordedChange extends ChangeCause {
  /** The version of the change. Each change has the next number. */
  version: number;
  /** The time of the change, in milliseconds since the epoch by the Redis server's clock. */
  at: number;
  /** The version that a rollback returned to. */
  rollbackTo?: number;
  /** The changed overrides and list entries: one of them, or for a rollback all that had changed since that version. */
  overrides: (ChangedRate | ChangedMode | ChangedList)[];
}

export const INHERIT_MODES: readonly InheritMode[] = ['keep', 'proportional', 'additive', 'reset'];
