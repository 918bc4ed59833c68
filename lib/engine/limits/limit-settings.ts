import type { AlgorithmOptions } from '../algorithms/index.js';
import type { RateLimitStoreError } from '../errors/errors.js';
import type { FeatureOfOptions, FeatureTerms } from './limit-feature.js';

/** What happens to a limit while its store fails: it counts in process, lets requests pass, or answers 503. */
export type StoreErrorPolicy = 'local' | 'allow' | 'deny';

/** The request to a limit whose store failed. */
export interface UnansweredCheck {
  /** The limit's name. */
  readonly limit: string;
  /** Who it counts, such as `ip:203.0.113.7`. */
  readonly key: string;
  /** Units. */
  readonly cost: number;
}

/** What happens to a limit while its store fails, or a function that returns it for a check; if the function fails, `'local'`. */
export type OnStoreError =
  | StoreErrorPolicy
  | ((error: RateLimitStoreError, check: UnansweredCheck) => StoreErrorPolicy);

/** The default share of its quota at which a limit is near. */
export const NEAR_LIMIT = 0.8;

export const STORE_ERROR_POLICIES: readonly StoreErrorPolicy[] = ['local', 'allow', 'deny'];

/** What happens to units that were left before a quota grew: they grow in proportion, or by the difference. */
export interface CarryOver {
  readonly mode: 'proportional' | 'additive';
  readonly quotaBefore: number;
}

/** Blocks that last longer with each offence, in microseconds. */
export interface Escalation {
  /** The length of the block of each offence; further ones last as long as the last of these. */
  readonly steps: readonly number[];
  /** How long after the end of the last block the offences are forgotten. */
  readonly forgetAfter: number;
}

/** The namespace of the limits that apply to every route. No class has such a name. */
export const MODULE_NAMESPACE = '@module';

/** Where a limit is declared: all in which limits with equal settings differ. */
export interface LimitPlace {
  /** Where the user wrote it, for messages. */
  readonly location: string;
  /** The namespace of its counters; `undefined` if its name alone identifies them. */
  readonly namespace?: string;
}

/** The settings of a limit besides its algorithm's options. */
export interface LimitSettings extends LimitPlace {
  /** Its name; by default made of its algorithm and rate. */
  readonly name?: string | undefined;
  /** The end of its default name. */
  readonly nameEnd?: string;
  /** Evaluated, counted and reported, but never a reason to refuse. */
  readonly shadow?: boolean;
  /** Whether it is switched off. */
  readonly off?: boolean;
  /** The share of the quota at which it is near. */
  readonly nearLimit?: number | undefined;
  /** What its units are called. */
  readonly unit?: string | undefined;
  /** The bytes of a unit, if its units are bytes of responses. */
  readonly bytesPerUnit?: number | undefined;
  /** What happens while its store fails; by default `'local'`. */
  readonly onStoreError?: OnStoreError;
  /** What happens to units left under another quota; by default the algorithm decides. */
  readonly carry?: CarryOver | undefined;
  /** How long it blocks refused keys, in microseconds. */
  readonly blockFor?: number;
  /** Whether tries during a block prolong it. */
  readonly strikes?: boolean;
  /** Whether tries that it refuses count, too, if its algorithm can count them. */
  readonly countsRefused?: boolean;
  /** Blocks that last longer with each offence; then `blockFor` is ignored. */
  readonly escalation?: Escalation | undefined;
  /** Whether its refusals may be remembered: units come back by time alone, or by a call that is published to all instances. */
  readonly remembersRefusals?: boolean;
  /** Whether each instance of the app counts on its own. */
  readonly instance?: boolean;
  /** The terms of its features. A candidate has those by which requests meet versions, a part of the limit those that decide. */
  readonly features?: readonly FeatureTerms[] | undefined;
  /** Makes features of its algorithm's own options: a part of it and its candidate have those that theirs make. */
  readonly featuresOfOptions?: readonly FeatureOfOptions[];
  /** The number of Redis replicas that must confirm charges; by default none. */
  readonly replicas?: number;
  /** How often its counters were started anew; each generation has keys of its own. */
  readonly generation?: number;
  /** All options of the algorithm of its candidate. */
  readonly candidate?: AlgorithmOptions | undefined;
  /** Whether it is itself a candidate. */
  readonly isCandidate?: boolean;
  /** Whether clients learn nothing of it. */
  readonly hidden?: boolean | undefined;
  /** Whether its refusals say nothing of when to come back. */
  readonly withoutRetryAfter?: boolean | undefined;
  /** What is called with its decisions. */
  readonly hooks?: object | undefined;
  /** The name of the limit that it is within. */
  readonly parent?: string | undefined;
}

/** `'enforce'` refuses, `'shadow'` counts and reports but never refuses, `'off'` does not check the limit at all. */
export type LimitMode = 'enforce' | 'shadow' | 'off';

/** All modes. Code gives a limit one of the first two. */
export const LIMIT_MODES: readonly LimitMode[] = ['enforce', 'shadow', 'off'];
