import { show } from '../wording.js';

/** The messages of units that are held, and of amounts of money. */
export const holdMessages = {
  noHold: (name: string, algo: string) =>
    `limit '${name}' of algo '${algo}' cannot be reserved without the option 'hold', wants the time after which its ` +
    "reservations lapse, such as '5m'",
  wrongReservation: (got: unknown) =>
    `the reservation's id is ${show(got)}, wants that of a reservation that holds units`,
  wrongActuals: (got: unknown, limits: number) =>
    `the actual costs are ${show(got)}, wants a list of ${limits}, one for each limit`,
  wrongAmount: (currency: string, got: unknown) =>
    `the amount in ${currency} is ${show(got)}, wants a decimal number >= 0 with at most six digits behind the point, such as '0.12', ` +
    'of at most 9007199254.740991; as text if a number cannot express it exactly',
  wrongCurrency: (got: unknown) => `the currency is ${show(got)}, wants an ISO 4217 code such as 'USD'`,
} as const;
