import type { AlgorithmOptions } from '../../engine/algorithms/index.js';
import type { Duration } from '../../engine/options/values.js';
import type { FeaturePatch, LiveFeatureOptions } from '../../storage/features/index.js';
import type { LimitMode } from '../../engine/limits/limit-settings.js';
import type { ChangeCause } from './change-cause.js';
import type { ChangedList } from './lists/list.js';

/**
 * How counters take over a changed rate: `'keep'` leaves it to the algorithm (see its page); `'proportional'` scales the
 * remaining units with the quota; `'additive'` adds as many as the quota has grown by. Under a smaller quota, used units stay
 * used in all three. `'reset'` starts all counters of the limit anew.
 */
export type InheritMode = 'keep' | 'proportional' | 'additive' | 'reset';

type OptionsOf<Algo extends AlgorithmOptions['algo']> = Extract<AlgorithmOptions, { algo: Algo }>;

type PatchOf<Options> = Options extends { algo: string } ? Partial<Omit<Options, 'algo'>> : never;

/**
 * The algorithm options of a limit that replace the configured ones, such as `{ rate: 50 }` or
 * `{ rate: 10, interval: '1s', burst: 40 }`: any of them, in the units of the configuration. Others stay as configured. The
 * algorithm itself and the options that every limit has (`name`, `key`, `cost`, ...) cannot be changed.
 */
export type RatePatch<Algo extends AlgorithmOptions['algo'] = AlgorithmOptions['algo']> = PatchOf<OptionsOf<Algo>> &
  FeaturePatch &
  LiveFeatureOptions;

/** Selects an identity whose overrides are queried. */
export interface OverrideQuery {
  /** The key of an identity, such as `'tenant:acme'`, as `consume` takes it and a `KeyResolver` returns it. */
  key?: string;
}

/** Options for ending an override. */
export interface ClearOptions extends ChangeCause {
  /**
   * The key of the override: of one identity, such as `'tenant:acme'`, or of all whose keys begin with a prefix, `'tenant:*'`.
   * @default the override of all identities
   */
  key?: string;
}

/** Options of an override. */
export interface OverrideOptions extends ClearOptions {
  /**
   * How long the override is in force, by the Redis server's clock: milliseconds or a duration such as `'10m'`, at most 1 year.
   * Then every instance returns to what it replaced.
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

/** An override in force. */
export interface Override extends ChangeCause {
  /** The key it was set for, such as `'tenant:acme'` or `'tenant:*'`; `undefined` for all identities. */
  key?: string;
  /** The number of the change that made it; it increases with every change. */
  version: number;
  /** When it expires, in milliseconds since the epoch by the Redis server's clock; `undefined` if it does not. */
  expiresAt: number | undefined;
}

/** A change of a limit's rate in force. */
export interface RateOverride extends Override {
  /** The options that replace the configured ones. */
  patch: RatePatch;
  /** How counters took over the changed rate. */
  inherit: InheritMode;
}

/**
 * Where a setting comes from: the configuration, the policy, the override of all identities of the limit, of those whose keys
 * begin with a prefix, or of one key.
 */
export type OverrideSource = 'configured' | 'policy' | 'limit' | 'pattern' | 'key';

/** The current rate of a limit. */
export interface CurrentRate {
  /** The limit's name. */
  name: string;
  /** The algorithm and its options: those of the override, or else the configured ones. */
  options: AlgorithmOptions;
  /** Those of its candidate; absent if it has none. */
  candidate?: AlgorithmOptions;
  /** Where they come from. */
  source: OverrideSource;
  /** The override in force; `undefined` if the configuration or the policy applies. */
  override: RateOverride | undefined;
  /** With source `'policy'`: its place in the policy, such as `'limits.yaml:12:3 limits.api'`. */
  policy?: string;
}

/** Selects a page of the overrides of a limit. */
export interface ListOverridesOptions {
  /** The `next` of the previous page. */
  cursor?: string;
  /**
   * The most overrides of a page, at most 1,000.
   * @default 100
   */
  count?: number;
}

/** The overrides for one key of a limit. */
export interface KeyOverrides {
  /** The key: of one identity, or a prefix followed by a star. */
  key: string;
  /** The override of its rate, if any. */
  rate: RateOverride | undefined;
  /** The override of its mode, if any. */
  mode: ModeOverride | undefined;
}

/** A page of overrides of a limit, in the order of their keys. */
export interface OverridePage {
  /** At most as many as requested. */
  overrides: KeyOverrides[];
  /** The `cursor` of the next page; `undefined` for the last one. */
  next: string | undefined;
}

/** A change of a limit's mode in force. */
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
  /** Where it comes from. */
  source: OverrideSource;
  /** The override in force; `undefined` if the configuration or the policy applies. */
  override: ModeOverride | undefined;
  /** With source `'policy'`: its place in the policy, such as `'limits.yaml:12:3 limits.api'`. */
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
   * How many of the latest changes to return, at most 1,000.
   * @default 100
   */
  last?: number;
}

/** What one change did to an override; `undefined` if there is none. */
interface ChangedOf<Kind extends 'rate' | 'mode', T> {
  kind: Kind;
  /** The limit's name. */
  limit: string;
  /** The key it is for; `undefined` for all identities. */
  key?: string;
  before: T | undefined;
  after: T | undefined;
}

/** What one change did to a rate. */
export type ChangedRate = ChangedOf<'rate', RateOverride>;

/** What one change did to a mode. */
export type ChangedMode = ChangedOf<'mode', ModeOverride>;

/** A change in the history. */
export interface RecordedChange extends ChangeCause {
  /** Its number; each change has the next one. */
  version: number;
  /** When it was made, in milliseconds since the epoch by the Redis server's clock. */
  at: number;
  /** For a rollback: the version to which it returned. */
  rollbackTo?: number;
  /** What it changed: one override or entry; for a rollback, all that had changed since that version. */
  overrides: (ChangedRate | ChangedMode | ChangedList)[];
}

export const INHERIT_MODES: readonly InheritMode[] = ['keep', 'proportional', 'additive', 'reset'];
