import { algoOption, type AlgorithmOptions, algorithms } from '../../../engine/algorithms/index.js';
import { object, readLater } from '../../../engine/options/kinds.js';
import type { OptionRows } from '../../../engine/options/option-row.js';
import type { Algorithm } from '../../../engine/algorithms/algorithm.js';
import { asksForAnchor } from '../../../engine/algorithms/anchor.js';
import { configError, RateLimitConfigError } from '../../../engine/errors/errors.js';
import { messages } from '../../../engine/errors/messages/general.js';
import { refuseForeignOptions } from '../../../engine/limits/limit-terms.js';
import { checkTogether, refuseUnknown, wrongOption } from '../../../engine/options/check-options.js';
import { isObject } from '../../../engine/options/values.js';
import type { KnownOptions, SecondVersion } from '../feature.js';
import { listOf } from '../../../engine/errors/wording.js';

type PatchOf<Options> = Options extends { algo: string } ? Partial<Options> : never;

/**
 * The options in which a candidate differs from its limit, such as `{ rate: 60 }`, or another algorithm with its options. All other options
 * are those of the limit, if the candidate's algorithm has them.
 */
export type CandidateOptions = PatchOf<AlgorithmOptions>;

/** The `candidate` option of limits. */
export interface CandidateLimitOptions {
  /**
   * Counts a second version of the limit that never rejects: `{ rate: 60 }`, or any other options of an algorithm. `decisions$` and
   * OpenTelemetry report what it would reject; clients don't notice it. Not with `prefetch`. A candidate of a `concurrency` limit must also
   * be `concurrency`.
   * @default no candidate
   */
  candidate?: CandidateOptions | undefined;
}

/** The candidates in policies and overrides. */
export interface CandidatePatch {
  /**
   * Another `candidate` for the changed limit; it inherits options from the changed limit. `null` for none.
   * @default the configured one, unchanged
   */
  candidate?: CandidateOptions | null | undefined;
}

/** The options of a candidate. All of them are optional, since it inherits those of its limit. */
const candidateRows: OptionRows = Object.fromEntries(
  Object.entries({ algo: algoOption, ...algorithms.options }).map(([option, { required: _, ...row }]) => [option, row]),
);

export const candidateOptions = {
  candidate: {
    kind: readLater(
      object(
        'an object of options of an algorithm, at least one, such as { rate: 60 }, or null for no candidate',
        candidateRows,
        {
          or: { expected: 'null', isValid: (value) => value === null },
          schema: { type: ['object', 'null'], minProperties: 1 },
          isOfAlgorithm: true,
        },
      ),
    ),
    text: 'A second version of the limit that is also counted and never rejects: the options that differ.',
    usual: 'none',
    live: 'rate',
    for: ({ adapting }) => adapting === undefined,
    excludes: ['prefetch'],
  },
} as const satisfies OptionRows;

/** The messages of limits with a candidate. */
const candidateMessages = {
  holds: (location: string, received: string, algo: string) =>
    `${location}.algo: the limit has '${algo}' and its candidate '${received}'. Use 'concurrency' for both or for none`,
  sameAsLimit: (location: string, option: string, own: readonly string[]) =>
    `${location}: option '${option}' is always that of the limit. A candidate can only set ${listOf(own, 'or')}`,
  anchor: (location: string) =>
    `${location}.anchor: expected a fixed date, received a function: a candidate uses the anchor that the function of the limit returns`,
} as const;

/** A limit whose `candidate` is read. */
interface Definition extends CandidateLimitOptions {
  readonly algo: string;
}

/** Reads the second version of a limit from its `candidate`. */
export const candidateVersion: SecondVersion<Definition, CandidatePatch> = {
  option: 'candidate',

  read(definition, location, known) {
    const { candidate, ...counted } = definition;
    if (candidate === undefined) return undefined;
    const algorithm = algorithms.get(definition.algo);
    // The limit itself is reported as invalid.
    if (algorithm === undefined) return undefined;
    if (!isObject(candidate) || givenEntries(candidate).length === 0) {
      const names = ['algo', ...Object.keys(algorithm.options)];
      const expected = `an object of at least one of ${names.join(', ')}, such as { rate: 60 }`;
      throw wrongOption(location, 'candidate', candidate, expected);
    }
    const within = `${location}.candidate`;
    const { algo } = candidate;
    const own = algo === undefined ? algorithm : algorithms.get(algo);
    if (own === undefined)
      throw configError('SLUICE_UNKNOWN_ALGORITHM', messages.unknownAlgorithm(within, algo, algorithms.names));
    refuseOthers(candidate, own, within, known);
    if (asksForAnchor(candidate)) throw configError('SLUICE_UNSUPPORTED_OPTION', candidateMessages.anchor(within));
    if ((own.leases === undefined) !== (algorithm.leases === undefined)) {
      throw configError('SLUICE_UNSUPPORTED_OPTION', candidateMessages.holds(within, own.name, algorithm.name));
    }
    const whole = wholeOf(definition, candidate);
    checkTogether(within, { ...counted, ...whole }, known.optionsOf(own));
    return whole;
  },

  optionsOf: (definition) => definition.candidate && wholeOf(definition, definition.candidate),

  patched(definition, patch) {
    const { candidate = definition.candidate && ownOf(definition, definition.candidate) } = patch;
    return { candidate: candidate ?? undefined };
  },
};

/** All options of a candidate: its own, and those of the limit that its algorithm supports. */
function wholeOf(definition: Definition, candidate: CandidateOptions): AlgorithmOptions {
  const algo = candidate.algo ?? definition.algo;
  const known = algorithms.get(algo)?.options ?? {};
  const inherited = Object.entries(definition).filter(([option]) => Object.hasOwn(known, option));
  const whole = Object.assign(Object.create(null) as AlgorithmOptions, Object.fromEntries(inherited));
  return Object.assign(whole, Object.fromEntries(givenEntries(candidate)), { algo });
}

/** All options of a candidate except an anchor from a function, since it has the same anchor as its limit. */
function ownOf(definition: Definition, candidate: CandidateOptions): CandidateOptions {
  const whole = wholeOf(definition, candidate);
  if (!asksForAnchor(whole)) return whole;
  const { anchor: _, ...own } = whole;
  return own;
}

function givenEntries(candidate: object): [string, unknown][] {
  return Object.entries(candidate).filter(([, value]) => value !== undefined);
}

/** Throws for options of other algorithms, and for options that a limit and its candidate share. */
function refuseOthers(candidate: object, algorithm: Algorithm, location: string, { isCommon }: KnownOptions): void {
  const own = ['algo', ...Object.keys(algorithm.options)];
  const given = Object.fromEntries(givenEntries(candidate));
  const common = Object.keys(given).find(isCommon);
  if (common !== undefined) throw new RateLimitConfigError(candidateMessages.sameAsLimit(location, common, own));
  refuseForeignOptions(given as never, algorithm, location);
  refuseUnknown(location, given, own);
}
