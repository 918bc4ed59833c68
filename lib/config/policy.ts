import type { AlgorithmOptions } from '../algorithms/index.js';
import type { Duration } from '../algorithms/options.js';
import type { CandidateOptions } from './common-limit-options.js';
import type { LimitDefinition } from './limit-definition.js';
import type { ConfiguredListEntry, ListName } from './list-entry.js';

/** Options that are no data, and those that a policy says in another way. */
type NoData = 'name' | 'skip' | 'body' | 'mode' | 'candidate';

type DataOf<Definition> = Definition extends LimitDefinition
  ? { readonly [Option in Exclude<keyof Definition, NoData>]?: Exclude<Definition[Option], Function> }
  : never;

type OverrideOf<Options> = Options extends AlgorithmOptions ? Readonly<Partial<Omit<Options, 'algo'>>> : never;

interface PolicyTerms {
  /** What becomes of it. */
  readonly mode?: PolicyMode;
  /** A second version of the limit that only reports; `null` for none. */
  readonly candidate?: CandidateOptions | null;
}

/** A limit as a policy has it: the options of a limit in code that are data. One that code defines says what it replaces. */
export type PolicyLimitData = DataOf<LimitDefinition> & PolicyTerms;

/** What a policy says of some identities of a limit: at least one member. */
export type PolicyOverrideData = OverrideOf<AlgorithmOptions> & PolicyTerms;

/**
 * A policy as data, of the form that a policy file has. `satisfies PolicyData` has an editor complete it; what is wrong with its
 * values is told when it is read.
 */
export interface PolicyData {
  /** By their names, limits that code need not define, and options that replace those of limits of code. */
  readonly limits?: Readonly<Record<string, PolicyLimitData>> | null;
  /** By the names of limits, then by keys such as `'tenant:acme'` or `'tenant:*'`, a rate, a mode or both. */
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
 * Gives the policy as data, of the form that a policy file has, `PolicyData`. The signal aborts when the answer is
 * not waited for any more.
 */
export type PolicyFunction = (signal: AbortSignal) => object | Promise<object>;

/** Limits as data: where they come from, and whether they are read again. */
export interface PolicyOptions {
  /** The path of a `.yaml`, `.yml` or `.json` file, from the working directory, or a function that gives the data. */
  source: string | PolicyFunction;
  /**
   * Whether the source is read again while the app runs. A version that is wrong is logged, and the last good one holds.
   * @default false
   */
  watch?: boolean;
  /**
   * The time between two looks at the source, only with `watch`: milliseconds or a duration such as `'30s'`, at least 10 ms and
   * at most 1 day. A changed file holds once two looks saw the same.
   * @default '1s' for a file, '30s' for a function
   */
  every?: Duration;
  /**
   * How long a function may take: milliseconds or a duration such as `'5s'`, at most 1 hour. Then it counts as failed.
   * @default '10s'
   */
  timeout?: Duration;
}

/** What a limit can be told to do. */
type PolicyMode = 'enforce' | 'shadow' | 'off';

/** What a policy says of one limit. */
export interface PolicyLimit {
  /** All options but the mode: of a limit that code defines only those that replace its own. */
  readonly options: Partial<LimitDefinition>;
  readonly mode: PolicyMode | undefined;
  /** For messages: the place of the limit. */
  readonly place: string;
  /** For messages: the places of its options. */
  readonly places: ReadonlyMap<string, string>;
}

type PatchOf<Definition> = Definition extends LimitDefinition
  ? Partial<Omit<Definition, 'candidate'>> & { candidate?: CandidateOptions | null }
  : never;

/** The options of a limit that some identities have; `null` is no candidate. */
type PolicyPatch = PatchOf<LimitDefinition>;

/** What a policy says of some identities of a limit. */
export interface PolicyOverride {
  readonly limit: string;
  /** The key of an identity, or the beginning of keys with a star behind it. */
  readonly key: string;
  readonly patch: PolicyPatch | undefined;
  readonly mode: PolicyMode | undefined;
  /** For messages. */
  readonly place: string;
}

/** Whom a policy exempts from limits or refuses. */
export interface PolicyListEntry {
  readonly list: ListName;
  /** Whom it names, as records of entries are addressed. */
  readonly key: string;
  /** The name of a limit; empty for all limits. */
  readonly limit: string;
  readonly reason: string | undefined;
  /** For messages. */
  readonly place: string;
}

/** One version of a policy, whose every part is right as far as that can be seen without the app. */
export interface Policy {
  /** The source, for messages. */
  readonly name: string;
  readonly limits: ReadonlyMap<string, PolicyLimit>;
  readonly overrides: readonly PolicyOverride[];
  readonly lists: readonly PolicyListEntry[];
}
