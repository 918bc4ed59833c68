import type { LimitMode } from '../../engine/limits/limit-settings.js';
import type { AlgorithmOptions } from '../../engine/algorithms/index.js';
import type { Duration } from '../../engine/options/values.js';
import type { FeaturePatch } from '../../storage/features/index.js';
import type { ExactLimit } from './limit-definition.js';
import type { ConfiguredListEntry, ListName } from './list-entry.js';

/** Options that aren't plain data, and options that a policy expresses in another way. */
type NoData = 'name' | 'skip' | 'body' | 'mode' | keyof FeaturePatch;

type DataOf<Definition> = Definition extends ExactLimit
  ? { readonly [Option in Exclude<keyof Definition, NoData>]?: Exclude<Definition[Option], Function> }
  : never;

type OverrideOf<Options> = Options extends AlgorithmOptions ? Readonly<Partial<Omit<Options, 'algo'>>> : never;

interface PolicyTerms extends Readonly<FeaturePatch> {
  /** The mode of the limit: enforced, shadow or off. */
  readonly mode?: LimitMode;
}

/** A limit in a policy: the options of a limit that are plain data. For a limit that code defines, only the options to replace. */
export type PolicyLimitData = DataOf<ExactLimit> & PolicyTerms;

/** The values that a policy changes for some keys of a limit: at least one member. */
export type PolicyOverrideData = OverrideOf<AlgorithmOptions> & PolicyTerms;

/**
 * A policy as data, in the form of a policy file. With `satisfies PolicyData` an editor completes it; invalid values are reported when it
 * is read.
 */
export interface PolicyData {
  /** Limits by name: new ones, and options that replace those of limits in code. */
  readonly limits?: Readonly<Record<string, PolicyLimitData>> | null;
  /** By the name of a limit, then by keys such as `'tenant:acme'` or `'tenant:*'`: a rate, a mode or both. */
  readonly overrides?: Readonly<Record<string, Readonly<Record<string, PolicyOverrideData>>>> | null;
  /** The clients that are exempt from limits, and those that are denied. */
  readonly lists?: {
    /** The clients that are exempt. */
    readonly allow?: readonly ConfiguredListEntry[] | null;
    /** The clients that are denied. */
    readonly deny?: readonly ConfiguredListEntry[] | null;
  } | null;
}

/**
 * Returns the policy as data, in the form of a policy file; see `PolicyData`. The signal aborts when the result is no longer
 * awaited.
 */
export type PolicyFunction = (signal: AbortSignal) => object | Promise<object>;

/** Limits as data: their source, and when it is read. */
export interface PolicyOptions {
  /** The path of a `.yaml`, `.yml` or `.json` file, relative to the working directory, or a function that returns the data. */
  source: string | PolicyFunction;
  /**
   * If true, the source is read again while the app runs. If a version contains an error, it is logged, and the last valid version stays in
   * effect.
   * @default false
   */
  watch?: boolean;
  /**
   * The interval between reads, only with `watch`: milliseconds or a duration such as `'30s'`, from 10 ms to 1 day. A changed file takes
   * effect once two consecutive reads return the same content.
   * @default '1s' for a file, '30s' for a function
   */
  every?: Duration;
  /**
   * The maximum time for a function before it counts as failed: milliseconds or a duration such as `'5s'`, at most 1 hour.
   * @default '10s'
   */
  timeout?: Duration;
}

/** The values that a policy sets for one limit. */
export interface PolicyLimit {
  /** All options but the mode; for a limit that code defines, only those that replace its own. */
  readonly options: Partial<ExactLimit>;
  readonly mode: LimitMode | undefined;
  /** The place of the limit in the policy, for messages. */
  readonly place: string;
  /** The places of its options, for messages. */
  readonly places: ReadonlyMap<string, string>;
}

type PatchOf<Definition> = Definition extends ExactLimit
  ? Partial<Omit<Definition, keyof FeaturePatch>> & FeaturePatch
  : never;

/** The options that a policy sets for some keys. */
type PolicyPatch = PatchOf<ExactLimit>;

/** The values that a policy sets for some keys of a limit. */
export interface PolicyOverride {
  readonly limit: string;
  /** A key, or the prefix of keys followed by a star. */
  readonly key: string;
  readonly patch: PolicyPatch | undefined;
  readonly mode: LimitMode | undefined;
  /** For messages. */
  readonly place: string;
}

/** A client that a policy exempts from limits or denies. */
export interface PolicyListEntry {
  readonly list: ListName;
  /** The key of the client, in the form that records use for address entries. */
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
