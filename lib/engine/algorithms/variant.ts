import type { OptionRows } from '../options/option-row.js';
import type { Algorithm } from './algorithm.js';

/** Replaces algorithms if an option is set, with its own state. */
export interface Variant {
  /** Any of these options selects it. Algorithms that support the variant also have these options. */
  readonly options: OptionRows;
  /** The variant of an algorithm; `undefined` if the algorithm doesn't support it. */
  of(algorithm: Algorithm): Algorithm | undefined;
}
