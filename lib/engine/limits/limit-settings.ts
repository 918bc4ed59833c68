import type { AlgorithmOptions } from '../algorithms/index.js';
import type { RateLimitStoreError } from '../errors/errors.js';
import type { FeatureOfOptions, FeatureTerms } from './limit-feature.js';
import { text } from '../options/kinds.js';

/** The fallback of a limit while its store fails: it counts in process, lets requests pass, or responds with 503. */
export type StoreErrorPolicy = 'local' | 'allow' | 'deny';

/** A check that a failing store could not decide. */
export interface UnansweredCheck {
  /** The limit's name. */
  readonly limit: string;
  /** The key that is counted, such as `ip:203.0.113.7`. */
  readonly key: string;
  /** The requested units. */
  readonly cost: number;
}

/** The fallback while the store fails, or a function that returns it per check; if the function throws, `'local'`. */
export type OnStoreError =
  | StoreErrorPolicy
  | ((error: RateLimitStoreError, check: UnansweredCheck) => StoreErrorPolicy);

/** The default share of its quota from which a counter is near its limit. */
export const NEAR_LIMIT = 0.8;

export const STORE_ERROR_POLICIES: readonly StoreErrorPolicy[] = ['local', 'allow', 'deny'];

/** The treatment of units that were left when a quota grew: they grow in proportion, or by the difference. */
export interface CarryOver {
  readonly mode: 'proportional' | 'additive';
  readonly quotaBefore: number;
}

/** Blocks that last longer with each offence, in microseconds. */
export interface Escalation {
  /** The length of the block of each offence. Later offences use the last step. */
  readonly steps: readonly number[];
  /** The time from the end of the last block until the offences are forgotten. */
  readonly forgetAfter: number;
}

/** The namespace of the limits that apply to every route. No class has this name. */
export const MODULE_NAMESPACE = '@module';

/** Separates the namespace of a class from that of one of its routes. */
export const ROUTE_OF_CLASS = '@route ';

/** The place of a limit's declaration, which contains everything in which limits with equal settings differ. */
export interface LimitPlace {
  /** The place in the user's code, for messages. */
  readonly location: string;
  /** The namespace of its counters; `undefined` if its name alone identifies them. */
  readonly namespace?: string;
}

/** The settings of a limit, except the options of its algorithm. */
export interface LimitSettings extends LimitPlace {
  /** Its name; by default composed of its algorithm and rate. */
  readonly name?: string | undefined;
  /** The end of its default name. */
  readonly nameEnd?: string;
  /** Evaluated, counted and reported, but never a reason to reject. */
  readonly shadow?: boolean;
  /** True if it is switched off. */
  readonly off?: boolean;
  /** The share of the quota from which a counter is near its limit. */
  readonly nearLimit?: number | undefined;
  /** The name of its units. */
  readonly unit?: string | undefined;
  /** The bytes of a unit, if its units are bytes of responses. */
  readonly bytesPerUnit?: number | undefined;
  /** The fallback while its store fails; by default `'local'`. */
  readonly onStoreError?: OnStoreError;
  /** The treatment of units that are left under another quota; by default the algorithm decides. */
  readonly carry?: CarryOver | undefined;
  /** The time for which it blocks rejected keys, in microseconds. */
  readonly blockFor?: number;
  /** True if attempts during a block extend it. */
  readonly strikes?: boolean;
  /** True if rejected attempts also count, if its algorithm supports that. */
  readonly countsRefused?: boolean;
  /** Blocks that last longer with each offence. If set, `blockFor` is ignored. */
  readonly escalation?: Escalation | undefined;
  /** True if its rejections may be cached: units only come back over time, or by a call that is published to all instances. */
  readonly remembersRefusals?: boolean;
  /** True if each instance of the app counts separately. */
  readonly instance?: boolean;
  /** The terms of its features. A candidate keeps those that define versions, a part of the limit keeps those that decide. */
  readonly features?: readonly FeatureTerms[] | undefined;
  /**
   * Creates features from the options of its algorithm. A part of it and its candidate have the features that result from their own
   * options.
   */
  readonly featuresOfOptions?: readonly FeatureOfOptions[];
  /** The number of Redis replicas that must confirm charges; by default none. */
  readonly replicas?: number;
  /** The number of times that its counters were restarted. Each generation has its own keys. */
  readonly generation?: number;
  /** All algorithm options of its candidate. */
  readonly candidate?: AlgorithmOptions | undefined;
  /** True if it is itself a candidate. */
  readonly isCandidate?: boolean;
  /** True if it is hidden from clients. */
  readonly hidden?: boolean | undefined;
  /** True if its rejections don't report when to retry. */
  readonly withoutRetryAfter?: boolean | undefined;
  /** The hooks that are called with its decisions. */
  readonly hooks?: object | undefined;
  /** The name of its parent. */
  readonly parent?: string | undefined;
}

/** `'enforce'` rejects, `'shadow'` counts and reports but never rejects, `'off'` does not check the limit at all. */
export type LimitMode = 'enforce' | 'shadow' | 'off';

/** All modes. Limits in code have one of the first two. */
export const LIMIT_MODES: readonly LimitMode[] = ['enforce', 'shadow', 'off'];

/** The characters that a String of a structured field can contain, since the name is sent in headers. */
export const limitName = text('1 to 128 printable ASCII characters', '^[ -~]{1,128}$');
