import type { OptionKind } from '../options/option-row.js';
import { isCurrency } from './money.js';

const WORD = /^[A-Za-z][A-Za-z -]{0,23}$/;
const CODE = /^[A-Z]{3}$/;

/** The name of a limit's units in the plural. `amount` in `util/figures.ts` derives the singular. */
export const unitName: OptionKind<string> = {
  expected: "a word of at most 24 letters such as 'tokens', or the code of a currency such as 'USD'",
  isValid: (value) => typeof value === 'string' && (CODE.test(value) ? isCurrency(value) : WORD.test(value)),
  schema: { type: 'string', pattern: WORD.source },
};
