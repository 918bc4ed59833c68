import type { OptionRows } from '../options/option-row.js';
import type { Algorithm } from './algorithm.js';

/** Counts in place of algorithms where an option is given, in a state of its own. */
export interface Variant {
  /** Any of these options selects it. Algorithms that can have it have them, too. */
  readonly options: OptionRows;
  /** It, in place of an algorithm; `undefined` if the algorithm cannot have it. */
  of(algorithm: Algorithm): Algorithm | undefined;
}
