import type { AlgorithmOptions } from '../algorithms/index.js';
import type { RateLimitStoreError } from '../errors/errors.js';
import type { FeatureTerms } from './limit-feature.js';
import type { ReservedShares } from './reserve-terms.js';

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

/** The share of its quota from which on a limit is near, unless it says another one. */
export const NEAR_LIMIT = 0.8;

export const STORE_ERROR_POLICIES: readonly StoreErrorPolicy[] = ['local', 'allow', 'deny'];

/** What becomes of units that were left before a quota grew: they grow with it, or by as much. */
export interface CarryOver {
  readonly mode: 'proportional' | 'additive';
  readonly quotaBefore: number;
}

/** Blocks that last longer with each offence, in microseconds. */
export interface Escalation {
  /** How long the block of the first offence lasts, of the second, and so on; all further ones last as long as the last of these. */
  readonly steps: readonly number[];
  /** How long after the end of the last block the offences are forgotten. */
  readonly forgetAfter: number;
}

/** Units that an instance takes at once, to decide in process. */
export interface PrefetchTerms {
  /** The most units that are taken at once. */
  readonly units: number;
  /** How long they can be used, in microseconds. */
  readonly ttl: number;
}

/** How units are shared among tenants. */
export interface ShareTerms {
  /** The share of the quota that each active tenant may use at least; 0 for none. */
  readonly floor: number;
}

/** What a limit is made of besides its algorithm's options. */
export interface LimitSettings {
  /** Where the user wrote it, for messages. */
  readonly location: string;
  /** The namespace of its counters; nothing if its name alone tells them apart. */
  readonly namespace?: string;
  /** Its name; that of its algorithm with its rate unless given. */
  readonly name?: string | undefined;
  /** What ends its name if that is not given. */
  readonly nameEnd?: string;
  /** Evaluated, counted and reported, but never a reason to refuse. */
  readonly shadow?: boolean;
  /** Not asked at all. */
  readonly off?: boolean;
  /** The share of the quota from which on it is near. */
  readonly nearLimit?: number | undefined;
  /** What happens while its store fails; `'local'` unless given. */
  readonly onStoreError?: OnStoreError;
  /** What becomes of the units that were left under another quota, if not what the algorithm makes of it. */
  readonly carry?: CarryOver | undefined;
  /** Whom it refuses, it refuses for so long: microseconds. */
  readonly blockFor?: number;
  /** It refuses longer with each offence; then `blockFor` is not read. */
  readonly escalation?: Escalation | undefined;
  /** Its refusals may be remembered: units come back by time alone, or by a call that tells all instances. */
  readonly remembersRefusals?: boolean;
  /** Units are taken in advance, and requests are decided in process. */
  readonly prefetch?: PrefetchTerms | undefined;
  /** Counted by each instance of the app for itself. */
  readonly instance?: boolean;
  /** Its units are shared among tenants. */
  readonly shared?: ShareTerms | undefined;
  /** What its options say of features. A part of it and a second version have none. */
  readonly features?: readonly FeatureTerms[] | undefined;
  /** The number of Redis replicas that have to confirm what is charged; none unless given. */
  readonly replicas?: number;
  /** The shares of its quota that are kept for important requests. */
  readonly reserveFor?: ReservedShares | undefined;
  /** How often its counters were made to start anew; each generation has keys of its own. */
  readonly generation?: number;
  /** All options of the algorithm of a second version, which is counted beside it. */
  readonly candidate?: AlgorithmOptions | undefined;
  /** It is such a second version itself. */
  readonly isCandidate?: boolean;
  /** The most units of an interval, with those that it borrows of the limit that it is within. */
  readonly ceiling?: number | undefined;
  /** The share of its quota that those within it may borrow; all of it unless given. */
  readonly lends?: number | undefined;
  /** The name of the limit that it is within. */
  readonly parent?: string | undefined;
}
