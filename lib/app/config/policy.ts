import type { LimitMode } from '../../engine/limits/limit-settings.js';
import type { AlgorithmOptions } from '../../engine/algorithms/index.js';
import type { Duration } from '../../engine/options/values.js';
import type { FeaturePatch } from '../../storage/features/index.js';
import type { ExactLimit } from './limit-definition.js';
import type { ConfiguredListEntry, ListName } from './list-entry.js';

/** Options that are not data, and options that a policy expresses in another way. */
type NoData = 'name' | 'skip' | 'body' | 'mode' | keyof FeaturePatch;

type DataOf<Definition> = Definition extends ExactLimit
  ? { readonly [Option in Exclude<keyof Definition, NoData>]?: Exclude<Definition[Option], Function> }
  : never;

type OverrideOf<Options> = Options extends AlgorithmOptions ? Readonly<Partial<Omit<Options, 'algo'>>> : never;

interface PolicyTerms extends Readonly<FeaturePatch> {
  /** Whether the limit is enforced, a shadow, or off. */
  readonly mode?: LimitMode;
}

/** A limit in a policy: those options of a limit in code that are data. For a limit that code defines, only what it replaces. */
export type PolicyLimitData = DataOf<ExactLimit> & PolicyTerms;

/** What a policy changes for some identities of a limit: at least one member. */
export type PolicyOverrideData = OverrideOf<AlgorithmOptions> & PolicyTerms;

/**
 * A policy as data, in the form of a policy file. With `satisfies PolicyData` an editor completes it; wrong values are reported
 * when it is read.
 */
export interface PolicyData {
  /** By name: limits that code need not define, and options that replace those of limits in code. */
  readonly limits?: Readonly<Record<string, PolicyLimitData>> | null;
  /** By the name of a limit, then by keys such as `'tenant:acme'` or `'tenant:*'`: a rate, a mode or both. */
  readonly overrides?: Readonly<Record<string, Readonly<Record<string, PolicyOverrideData>>>> | null;
  /** Who is exempt from limits, and who is refused. */
  readonly lists?: {
    /** Who is exempt. */
    readonly allow?: readonly ConfiguredListEntry[] | null;
    /** Who is refused. */
    readonly deny?: readonly ConfiguredListEntry[] | null;
  } | null;
}

/**
 * Returns the policy as data, in the form of a policy file; see `PolicyData`. The signal aborts when the result is no longer
 * awaited.
 */
export type PolicyFunction = (signal: AbortSignal) => object | Promise<object>;

/** Limits as data: their source, and whether it is read again. */
export interface PolicyOptions {
  /** The path of a `.yaml`, `.yml` or `.json` file, relative to the working directory, or a function that returns the data. */
  source: string | PolicyFunction;
  /**
   * Whether the source is read again while the app runs. A version with a mistake is logged, and the last good one stays in
   * force.
   * @default false
   */
  watch?: boolean;
  /**
   * How often the source is read, only with `watch`: milliseconds or a duration such as `'30s'`, from 10 ms to 1 day. A changed
   * file takes effect once two reads in a row saw the same.
   * @default '1s' for a file, '30s' for a function
   */
  every?: Duration;
  /**
   * How long a function may take before it counts as failed: milliseconds or a duration such as `'5s'`, at most 1 hour.
   * @default '10s'
   */
  timeout?: Duration;
}

/** What a policy sets for one limit. */
export interface PolicyLimit {
  /** All options but the mode; for a limit that code defines, only those that replace its own. */
  readonly options: Partial<ExactLimit>;
  readonly mode: LimitMode | undefined;
  /** The place of the limit, for messages. */
  readonly place: string;
  /** The places of its options, for messages. */
  readonly places: ReadonlyMap<string, string>;
}

type PatchOf<Definition> = Definition extends ExactLimit
  ? Partial<Omit<Definition, keyof FeaturePatch>> & FeaturePatch
  : never;

/** The options of a limit that some identities have. */
type PolicyPatch = PatchOf<ExactLimit>;

/** What a policy sets for some identities of a limit. */
export interface PolicyOverride {
  readonly limit: string;
  /** The key of an identity, or the beginning of keys followed by a star. */
  readonly key: string;
  readonly patch: PolicyPatch | undefined;
  readonly mode: LimitMode | undefined;
  /** For messages. */
  readonly place: string;
}

/** Who a policy exempts from limits or refuses. */
export interface PolicyListEntry {
  readonly list: ListName;
  /** Who it names, in the form in which records address entries. */
  readonly key: string;
  /** The name of a limit; empty for all limits. */
  readonly limit: string;
  readonly reason: string | undefined;
  /** For messages. */
  readonly place: string;
}

/** One version of a policy. All of its parts are valid as far as that can be checked without the app. */
export interface Policy {
  /** The source, for messages. */
  readonly name: string;
  readonly limits: ReadonlyMap<string, PolicyLimit>;
  readonly overrides: readonly PolicyOverride[];
  readonly lists: readonly PolicyListEntry[];
}
