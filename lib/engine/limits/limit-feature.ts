import type { Algorithm, Parameters } from '../algorithms/algorithm.js';
import type { AlgorithmOptions } from '../algorithms/index.js';
import { bare } from '../util/objects.js';
import type { Correction, Estimates } from './estimates.js';

/** What a request says of itself by which it meets a limit: its `priority`, and what features read whose limits have versions. */
export interface MetBy {
  readonly [said: string]: unknown;
}

/** What a limit is for requests that say something of themselves: it has the counter of the limit, and other parameters. */
export interface Version {
  readonly parameters: Parameters;
  /** What these requests say. */
  readonly metBy: MetBy;
  /** Distinguishes those who meet it from others: their calls wait in a line of their own. */
  readonly line: string;
  /** They may take a part of the quota: stores read and write the counter by the limit with all of it. */
  readonly isPart?: boolean;
}

/** A version that is compiled like a limit of its own, by other options of the algorithm, with which it has no such versions. */
export interface CompiledVersion {
  /** These options, made of those of the limit, or of its candidate. */
  options(written: AlgorithmOptions): AlgorithmOptions;
  /** What these requests say. Others of its features may have versions of it. */
  readonly metBy: MetBy;
}

/** How requests meet a limit in different versions. */
export interface Versions {
  /** Identifies the version for requests that say this; `undefined` if they say nothing that matters to it. */
  idOf(by: MetBy): string | undefined;
  /** That version, of a limit that has these parameters for all requests together; `undefined` if it is the limit itself. */
  make(parameters: Parameters, by: MetBy): Version | CompiledVersion | undefined;
  /** What those say who meet the limit itself. */
  readonly ofAll?: MetBy;
  /** The priority of requests matters. */
  readonly byPriority?: true;
  /** Why the limit cannot be in a list: nothing says there of requests what it has to know. */
  notListed?(location: string): string;
  /** Why its units cannot be reserved. */
  notReservable?(): string;
}

/** How many counters a store in process keeps at most, and how many bytes they may take. */
export interface MemoryBounds {
  readonly maxKeys: number;
  readonly maxBytes: number;
}

/** What a store in process keeps for all limits with a feature. */
export interface KeptInMemory {
  /** Forgets all. */
  clear(): void;
}

/** What a feature does where counters live in process. */
export interface FeatureInMemory<Kept extends KeptInMemory = KeptInMemory> {
  /** Makes what a store keeps for it, with the first limit. All limits of the feature have the same function, which stands for it. */
  readonly keep: (bounds: MemoryBounds) => Kept;
  /** A counter is charged. */
  charged(kept: Kept, identity: string, units: number, now: number): void;
  /** A counter is stored with a change of what it was charged before. */
  corrected(kept: Kept, identity: string, correction: Correction, now: number): void;
}

/** The keys that a counter has for a feature besides its own, and what else its fragment needs to know of it. */
export interface BesideCounter {
  readonly keys: readonly string[];
  readonly texts: readonly string[];
}

/** What a feature does where counters live on Redis: what its fragment of `lua/features/` is called with. */
export interface FeatureInScript {
  /** How many keys a counter has for it at most. */
  readonly keys: number;
  /** What follows the counter's own key in keys that go with it. */
  readonly ends?: readonly string[];
  /** What it takes of the server besides the check, in checks of a plain counter. */
  readonly work: number;
  /** The numbers of the limit, in the order of the fragment's `parameters`. `now` is the best guess of the server's time. */
  numbers(now: number): readonly number[];
  /** What a counter has for it, whose key has that hash tag; but not a counter of starts, which has nothing for features. */
  beside?(prefix: string, tag: string): BesideCounter;
}

/** An entry of a check whose limits decide together. */
export interface EntryTogether {
  readonly limit: {
    readonly name: string;
    /** The name of the limit that it is within. */
    readonly parent: string | undefined;
    readonly shadow: boolean;
    readonly features: readonly LimitFeature[] | undefined;
  };
  readonly identity: string;
}

/** What a store in process found of an entry. */
export interface FoundEntry {
  readonly cost: number;
  allowed: boolean;
  /** Units of its counter that it may not use, besides its cost. */
  withheld: number;
}

/** Decides which entries of a check fit, where that depends on several of its limits. It is called if any limit of the check has it. */
export interface DecidesTogether {
  /** The name of its fragment, which decides on Redis. */
  readonly name: string;
  /** What it takes of the server besides the check, in checks of a plain counter. */
  readonly work: number;
  /** In process: sets `allowed` and `withheld`. `waitFor` says how long until units fit, 0 if they do and `Infinity` for never. */
  decide<Found extends FoundEntry>(
    entries: readonly EntryTogether[],
    found: readonly Found[],
    waitFor: (found: Found, units: number) => number,
  ): void;
  /** What its fragment needs to know of the entries. */
  numbers(entries: readonly EntryTogether[]): readonly number[];
}

/** What one limit has of a feature, made of its options. Stores call it where a limit has any, and know no feature by its name. */
export interface LimitFeature {
  /** Distinguishes it from other features, in the script, too. */
  readonly name: string;
  /** The parameters by which all instances decide, made of those that the user wrote. Throws `RateLimitConfigError`. */
  parameters?(declared: Parameters): Parameters;
  /** The variant of the limit's algorithm that counts in its place, under the same keys. */
  readonly variant?: Algorithm;
  /** Two letters that end its keys in place of those of the algorithm, if the variant has counters of its own. */
  readonly code?: string;
  /** Its units cannot be held at an estimate: what is reserved is charged. */
  readonly withoutEstimates?: true;
  /** Requests meet different versions of the limit. */
  readonly versions?: Versions;
  /** It is made of the algorithm's own options, so a part of the limit has it as it is. */
  readonly ofOptions?: true;
  /** Its terms for a part of the limit with these options, which one of several instances may allow; without it, the part has none. */
  ofPart?(part: number, options: AlgorithmOptions): object;
  /** The most units of the quota that it withholds from a check. */
  readonly withholds?: number;
  /** Decides on the checks of the limit, together with their other limits. */
  readonly together?: DecidesTogether | undefined;
  /** Its refusals are not remembered: what is refused by the counter may be allowed before its wait is over. */
  readonly forgetsRefusals?: true;
  /** A limit has it only where counters live on Redis: elsewhere it is compiled without it. */
  readonly onlyWithRedis?: true;
  /** For how long after its charge a unit that comes back still changes what the feature keeps, in microseconds. */
  readonly keepsFor?: number;
  /** Keeps units that are reserved at an estimate. */
  readonly estimates?: Estimates;
  readonly memory?: FeatureInMemory;
  readonly script?: FeatureInScript;
}

/** What a feature needs to know of the limit that has it. */
export interface FeaturedLimit {
  readonly name: string;
  /** Identifies what it keeps among that of all limits. It stays the same when counters are reset or the algorithm changes. */
  readonly recordId: string;
  readonly algorithm: Algorithm;
  /** The options of its algorithm as written. */
  readonly options: AlgorithmOptions;
  /** The parameters that the user declared: a feature may have all instances decide by others. */
  readonly declared: Parameters;
}

/** What the options of a limit say of a feature: plain values, so that equal options are known to be equal. */
export interface FeatureTerms {
  /** Makes what the limit has of it. Throws `RateLimitConfigError` if it cannot have it. */
  readonly of: (limit: FeaturedLimit, terms: never, location: string) => LimitFeature;
  readonly terms: object;
}

/** How requests meet a limit in different versions, by each of its features in which they do. */
export function versionsOf({ features }: { readonly features: readonly LimitFeature[] | undefined }): Versions[] {
  if (features === undefined) return [];
  // A version by other options has versions by the other features.
  const inOrder = [true, undefined].flatMap((first) => features.filter(({ ofOptions }) => ofOptions === first));
  return inOrder.flatMap(({ versions }) => (versions === undefined ? [] : bare(versions)));
}

/** Makes what a limit has of a feature by its algorithm's own options, after the features before it; nothing if these have none. */
export type FeatureOfOptions = (
  limit: FeaturedLimit,
  before: readonly LimitFeature[],
  location: string,
) => LimitFeature | undefined;

/** What a limit has of all features; nothing if it has none, as most. */
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
