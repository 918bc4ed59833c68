import type { Algorithm } from '../../engine/algorithms/algorithm.js';
import type { AlgorithmOptions } from '../../engine/algorithms/index.js';
import type { OptionRows } from '../../engine/options/option-row.js';

/** The options that limits support. */
export interface KnownOptions {
  /** Returns true for an option that limits of any algorithm may have. */
  readonly isCommon: (option: string) => boolean;
  /** The options of an algorithm's limits. */
  readonly optionsOf: (algorithm: Algorithm) => OptionRows;
}

/** Reads a second version of a limit, which is counted in addition: `CompiledLimit.candidate`. */
export interface SecondVersion<Definition = never, Patch = never> {
  /** The name of the option. */
  readonly option: string;
  /** All options of its algorithm; `undefined` without a second version. Throws `RateLimitConfigError`. */
  read(definition: Definition, location: string, known: KnownOptions): AlgorithmOptions | undefined;
  /** The same options, for a definition that was read before. */
  optionsOf(definition: Definition): AlgorithmOptions | undefined;
  /** The second version in a definition after a patch: the one in the patch, applied to the changed limit, or the previous one. */
  patched(definition: Definition, patch: Patch): object;
}
