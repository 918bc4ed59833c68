import { wrongInput } from '../wording.js';

/** The messages of held units, and of amounts of money. */
export const holdMessages = {
  noHold: (name: string, algo: string) =>
    `limit '${name}' of algo '${algo}' cannot be reserved without the option 'hold'. Set 'hold' to the time after which its ` +
    "reservations expire, such as '5m'",
  wrongReservation: (received: unknown) =>
    wrongInput('id of the reservation', 'that of a reservation that holds units', received),
  wrongActuals: (received: unknown, limits: number) =>
    wrongInput('actual costs', `a list of ${limits}, one for each limit`, received),
  wrongAmount: (currency: string, received: unknown) =>
    wrongInput(
      `amount in ${currency}`,
      "a decimal number >= 0 with at most six digits after the point, such as '0.12', of at most 9007199254.740991 (as text if a number cannot express it exactly)",
      received,
    ),
  wrongCurrency: (received: unknown) => wrongInput('currency', "an ISO 4217 code such as 'USD'", received),
} as const;
