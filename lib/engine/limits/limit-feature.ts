import type { Algorithm, Parameters } from '../algorithms/algorithm.js';
import type { AlgorithmOptions } from '../algorithms/index.js';
import { bare } from '../util/objects.js';
import type { Correction, Estimates } from './estimates.js';

/** The traits of a request that select a version of a limit: its `priority`, and those that features with versions read. */
export interface MetBy {
  readonly [said: string]: unknown;
}

/** A version of a limit for requests with certain traits. It shares the counter of the limit, but has other parameters. */
export interface Version {
  readonly parameters: Parameters;
  /** The traits of these requests. */
  readonly metBy: MetBy;
  /** Identifies the queue in which calls that use this version wait, separately from others. */
  readonly line: string;
  /** These requests may use a part of the quota. Stores read and write the counter with the limit that has the full quota. */
  readonly isPart?: boolean;
}

/** A version that is compiled like a separate limit, with other options of the algorithm. */
export interface CompiledVersion {
  /** Returns these options, based on those of the limit or of its candidate. */
  options(written: AlgorithmOptions): AlgorithmOptions;
  /** The traits of these requests. Other features of the limit may have versions of this version. */
  readonly metBy: MetBy;
}

/** The versions of a limit for different requests. */
export interface Versions {
  /** Identifies the version for requests with these traits; `undefined` if the traits don't affect it. */
  idOf(by: MetBy): string | undefined;
  /** Returns that version of a limit with these parameters; `undefined` if it is the limit itself. */
  make(parameters: Parameters, by: MetBy): Version | CompiledVersion | undefined;
  /** The traits of requests that use the limit itself. */
  readonly ofAll?: MetBy;
  /** The versions depend on the priority of requests. */
  readonly byPriority?: true;
  /** The reason why the limit cannot be in a list, where requests have no traits; for messages. */
  notListed?(location: string): string;
  /** The reason why its units cannot be reserved, for messages. */
  notReservable?(): string;
}

/** The maximum number of counters in an in-process store, and their maximum memory in bytes. */
export interface MemoryBounds {
  readonly maxKeys: number;
  readonly maxBytes: number;
}

/** The data that an in-process store keeps for all limits with a feature. */
export interface KeptInMemory {
  /** Deletes all of it. */
  clear(): void;
}

/** The part of a feature for in-process counters. */
export interface FeatureInMemory<Kept extends KeptInMemory = KeptInMemory> {
  /**
   * Creates the data of the feature, for its first limit in a store. All limits of the feature have the same function, which identifies it.
   */
  readonly keep: (bounds: MemoryBounds) => Kept;
  /** Called when a counter is charged. */
  charged(kept: Kept, identity: string, units: number, now: number): void;
  /** Called when a counter is stored after a change of an earlier charge. */
  corrected(kept: Kept, identity: string, correction: Correction, now: number): void;
}

/** The additional keys of a counter for a feature, and further texts that its fragment needs. */
export interface BesideCounter {
  readonly keys: readonly string[];
  readonly texts: readonly string[];
}

/** The part of a feature for counters on Redis: the arguments of its fragment in `lua/features/`. */
export interface FeatureInScript {
  /** The maximum number of additional keys per counter. */
  readonly keys: number;
  /** The suffixes that are appended to the counter's own key for these keys. */
  readonly ends?: readonly string[];
  /** The additional work on the server, in checks of a plain counter. */
  readonly work: number;
  /** The numbers of the limit, in the order of the fragment's `parameters`. `now` is the best estimate of the server's time. */
  numbers(now: number): readonly number[];
  /**
   * The additional keys and texts of a counter whose key has that hash tag. Not called for a counter of starts, which features don't use.
   */
  beside?(prefix: string, tag: string): BesideCounter;
}

/** An entry of a check whose limits decide together. */
export interface EntryTogether {
  readonly limit: {
    readonly name: string;
    /** The name of its parent. */
    readonly parent: string | undefined;
    readonly shadow: boolean;
    readonly features: readonly LimitFeature[] | undefined;
  };
  readonly identity: string;
}

/** An in-process store's result for an entry. */
export interface FoundEntry {
  readonly cost: number;
  allowed: boolean;
  /** The units of its counter that it may not use, not including its cost. */
  withheld: number;
}

/** Decides which entries of a check fit if that depends on several of its limits. It is called if any limit of the check has it. */
export interface DecidesTogether {
  /** The name of the fragment that decides on Redis. */
  readonly name: string;
  /** The additional work on the server, in checks of a plain counter. */
  readonly work: number;
  /**
   * Decides in process: sets `allowed` and `withheld`. `waitFor` returns the time until units fit, 0 if they do and `Infinity` for never.
   */
  decide<Found extends FoundEntry>(
    entries: readonly EntryTogether[],
    found: readonly Found[],
    waitFor: (found: Found, units: number) => number,
  ): void;
  /** The numbers of the entries that its fragment needs. */
  numbers(entries: readonly EntryTogether[]): readonly number[];
}

/** A feature of one limit, based on the limit's options. Stores call its members if present, without knowing any feature by its name. */
export interface LimitFeature {
  /** Distinguishes it from other features, including those in the script. */
  readonly name: string;
  /** The parameters with which all instances decide, based on those that the user wrote. Throws `RateLimitConfigError`. */
  parameters?(declared: Parameters): Parameters;
  /** The variant of the limit's algorithm that replaces it, with the same keys. */
  readonly variant?: Algorithm;
  /** Two letters at the end of its keys that replace those of the algorithm, if the variant has its own counters. */
  readonly code?: string;
  /** Its units cannot be held as an estimate: reserved units are charged. */
  readonly withoutEstimates?: true;
  /** The limit has different versions for different requests. */
  readonly versions?: Versions;
  /** It is based on the algorithm's own options, so a part of the limit has the same feature. */
  readonly ofOptions?: true;
  /**
   * Its terms for a part of the limit with these options, which one of several instances may allow; without it, the part doesn't have the
   * feature.
   */
  ofPart?(part: number, options: AlgorithmOptions): object;
  /** The maximum number of units of the quota that it withholds from a check. */
  readonly withholds?: number;
  /** Decides on checks of the limit together with their other limits. */
  readonly together?: DecidesTogether | undefined;
  /** Its rejections are not cached, because a request may be allowed before its wait is over. */
  readonly forgetsRefusals?: true;
  /** It only exists on Redis: for other stores, the limit is compiled without it. */
  readonly onlyWithRedis?: true;
  /** The time after a charge during which a refund still changes the feature's data, in microseconds. */
  readonly keepsFor?: number;
  /** Stores units that are reserved as an estimate. */
  readonly estimates?: Estimates;
  readonly memory?: FeatureInMemory;
  readonly script?: FeatureInScript;
}

/** The properties of a limit that its features need. */
export interface FeaturedLimit {
  readonly name: string;
  /** Identifies its data among that of all limits. It stays the same when counters are reset or the algorithm changes. */
  readonly recordId: string;
  readonly algorithm: Algorithm;
  /** The options of its algorithm as written. */
  readonly options: AlgorithmOptions;
  /** The parameters that the user declared. A feature may make all instances decide with others. */
  readonly declared: Parameters;
}

/** The options of a limit for a feature: plain values, so that equal options can be recognized. */
export interface FeatureTerms {
  /** Creates the feature of the limit. Throws `RateLimitConfigError` if the limit does not support it. */
  readonly of: (limit: FeaturedLimit, terms: never, location: string) => LimitFeature;
  readonly terms: object;
}

/** The versions of a limit for different requests, by the features that define them. */
export function versionsOf({ features }: { readonly features: readonly LimitFeature[] | undefined }): Versions[] {
  if (features === undefined) return [];
  // A version with other options has versions for the other features.
  const inOrder = [true, undefined].flatMap((first) => features.filter(({ ofOptions }) => ofOptions === first));
  return inOrder.flatMap(({ versions }) => (versions === undefined ? [] : bare(versions)));
}

/** Creates a feature from the algorithm's own options, after the features before it; `undefined` if the options don't need it. */
export type FeatureOfOptions = (
  limit: FeaturedLimit,
  before: readonly LimitFeature[],
  location: string,
) => LimitFeature | undefined;

/** All features of a limit; `undefined` if it has none, which is the usual case. */
export function featuresOf(
  limit: FeaturedLimit,
  {
    features = [],
    featuresOfOptions = [],
  }: {
    readonly features?: readonly FeatureTerms[] | undefined;
    readonly featuresOfOptions?: readonly FeatureOfOptions[];
  },
  location: string,
): readonly LimitFeature[] | undefined {
  const found = features.map(({ of, terms }) => of(limit, terms as never, location));
  for (const featureOf of featuresOfOptions) {
    const feature = featureOf(limit, found, location);
    if (feature !== undefined) found.push(feature);
  }
  return found.length === 0 ? undefined : found;
}

/** Calls back once something is used for the first time in this process. */
export class FirstUse {
  private isUsed = false;
  private readonly waiting = new Set<() => void>();

  /** Called when it is used. */
  note(): void {
    if (this.isUsed) return;
    this.isUsed = true;
    for (const call of this.waiting) call();
    this.waiting.clear();
  }

  /** Calls back at its first use; immediately if it has already been used. Returns a function that cancels the callback. */
  whenUsed(call: () => void): () => void {
    if (this.isUsed) call();
    else this.waiting.add(call);
    return () => void this.waiting.delete(call);
  }
}
