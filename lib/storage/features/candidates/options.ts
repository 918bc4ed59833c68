import { algoOption, type AlgorithmOptions, algorithms } from '../../../engine/algorithms/index.js';
import { object, readLater } from '../../../engine/options/kinds.js';
import type { OptionRows } from '../../../engine/options/option-row.js';

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
