import type { Algorithm } from '../../engine/algorithms/algorithm.js';
import type { AlgorithmOptions } from '../../engine/algorithms/index.js';
import type { OptionRows } from '../../engine/options/option-row.js';

/** The options that limits have. */
export interface KnownOptions {
  /** Whether an option is one that limits of any algorithm may have. */
  readonly isCommon: (option: string) => boolean;
  /** The options that a limit of an algorithm can have. */
  readonly optionsOf: (algorithm: Algorithm) => OptionRows;
}

/** How a feature reads a second version of a limit, which is counted beside it: `CompiledLimit.candidate`. */
export interface SecondVersion<Definition = never, Patch = never> {
  /** The option that has it. */
  readonly option: string;
  /** All options of its algorithm; `undefined` if there is none. Throws `RateLimitConfigError`. */
  read(definition: Definition, location: string, known: KnownOptions): AlgorithmOptions | undefined;
  /** The same of a definition that was read before. */
  optionsOf(definition: Definition): AlgorithmOptions | undefined;
  /** What a definition says of it after a patch: what the patch says, which then patches the changed limit, or the same as before. */
  patched(definition: Definition, patch: Patch): object;
}
