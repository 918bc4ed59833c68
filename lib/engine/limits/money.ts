import { argumentError, RateLimitArgumentError } from '../errors/errors.js';
import { holdMessages } from '../errors/messages/calls.js';
import type { OptionKind } from '../options/option-row.js';

/** The decimal places of a micro-unit. */
const DIGITS = 6;
const AMOUNT = /^(\d{1,16})(?:\.(\d{1,6})0*)?$/;
/** From here on, consecutive numbers differ by more than a micro-unit, so a number with a fraction may represent several amounts. */
const COARSE = 2 ** 33;
/** Read when the first amount or unit is. */
let currencies: ReadonlySet<string> | undefined;

/**
 * Converts an amount of money to micro-units, millionths of the currency's main unit: `money('0.12', 'EUR')` is 120,000. Currencies are not
 * distinguished, so a limit should only use one. Throws `RateLimitArgumentError` if the result is not a whole number of micro-units.
 *
 * @param amount a decimal number >= 0, as text or as a number, with at most six decimal places
 * @param currency an ISO 4217 code, such as `'JPY'`
 */
export function money(amount: number | string, currency: string): number {
  if (!isCurrency(currency)) throw new RateLimitArgumentError(holdMessages.wrongCurrency(currency));
  // A number is read as it is printed: 0.12 is exactly 0.12, not its binary approximation.
  const read = typeof amount === 'number' || typeof amount === 'string' ? AMOUNT.exec(String(amount)) : null;
  const micros = read === null ? NaN : Number(read[1]! + (read[2] ?? '').padEnd(DIGITS, '0'));
  const isVague = typeof amount === 'number' && amount > COARSE && !Number.isInteger(amount);
  if (!Number.isSafeInteger(micros) || isVague)
    throw argumentError('SLUICE_INVALID_COST', holdMessages.wrongAmount(currency, amount));
  return micros;
}

/** Returns true if a text is the code of a currency. */
export function isCurrency(code: string): boolean {
  return (currencies ??= new Set(Intl.supportedValuesOf('currency'))).has(code);
}

/** Dollars in micro-units: `usd(0.12)` is 120,000. Throws like `money`. */
export function usd(amount: number | string): number {
  return money(amount, 'USD');
}

/** Euros in micro-units: `eur(0.12)` is 120,000. Throws like `money`. */
export function eur(amount: number | string): number {
  return money(amount, 'EUR');
}

/** Pounds in micro-units: `gbp(0.12)` is 120,000. Throws like `money`. */
export function gbp(amount: number | string): number {
  return money(amount, 'GBP');
}

const WORD = /^[A-Za-z][A-Za-z -]{0,23}$/;
const CODE = /^[A-Z]{3}$/;

/** The name of a limit's units in the plural. `amount` in `util/figures.ts` derives the singular. */
export const unitName: OptionKind<string> = {
  expected: "a word of at most 24 letters such as 'tokens', or the code of a currency such as 'USD'",
  isValid: (value) => typeof value === 'string' && (CODE.test(value) ? isCurrency(value) : WORD.test(value)),
  schema: { type: 'string', pattern: WORD.source },
};
