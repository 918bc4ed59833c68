import type { OptionKind } from '../options/option-row.js';
import { isCurrency } from './money.js';

const WORD = /^[A-Za-z][A-Za-z -]{0,23}$/;
const CODE = /^[A-Z]{3}$/;

/** What the units of a limit are called, in the plural: `amount` of `util/figures.ts` says what one of them is. */
export const unitName: OptionKind<string> = {
  expected: "a word of at most 24 letters such as 'tokens', or the code of a currency such as 'USD'",
  isValid: (value) => typeof value === 'string' && (CODE.test(value) ? isCurrency(value) : WORD.test(value)),
  schema: { type: 'string', pattern: WORD.source },
};
