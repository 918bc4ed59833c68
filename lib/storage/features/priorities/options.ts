import { PRIORITIES, type Priority } from '../../../engine/limits/arguments.js';
import { number, object } from '../../../engine/options/kinds.js';
import type { OptionRow, OptionRows } from '../../../engine/options/option-row.js';

/**
 * The shares of a limit's quota that are kept for important requests, per priority. Only requests of that priority, or of a more important
 * one, may take them. Each share is more than 0, and their sum is less than 1.
 */
export type ReservedShares = Partial<Record<Exclude<Priority, 'sheddable'>, number>>;

/** The `reserveFor` option of limits. */
export interface ReservingLimitOptions {
  /**
   * Keeps shares of the quota for important requests. With `{ critical: 0.2 }`, only requests of priority `'critical'` may take the last
   * fifth; with `{ default: 0.1 }`, requests of priority `'sheddable'` may not take the last tenth. Each share is more than 0, and their
   * sum is less than 1. They are rounded up to whole units, but leave at least one unit for all requests. A decision's `quota`, `remaining`
   * and `retryAfterMs` are those of the request's priority. Not with `prefetch` or `blockFor`.
   * @default no shares are kept
   */
  reserveFor?: ReservedShares | undefined;
}

/** A share of a whole: less than all of it. */
const part = number('a number > 0 and < 1', { exclusiveMinimum: 0, exclusiveMaximum: 1 });

export const reserveOptions = {
  reserveFor: {
    kind: object(
      "an object of shares by priority, 'critical' or 'default', each more than 0 and together less than 1, such as { critical: 0.2 }",
      {
        critical: { kind: part, text: "The share that only requests of priority 'critical' may use." },
        default: { kind: part, text: "The share that requests of priority 'sheddable' may not use." },
      } satisfies Record<keyof ReservedShares, OptionRow>,
      { isValid: isReservable },
    ),
    text: 'Shares of the quota that are reserved for requests of a priority, and for more important ones.',
    usual: 'none',
    for: ({ adapting }) => adapting === undefined,
    // Any request may use prefetched units, and a block rejects all requests.
    excludes: ['prefetch', 'blockFor'],
  },
} as const satisfies OptionRows;

/** Returns true if the shares leave something for all requests. */
function isReservable(shares: ReservedShares): boolean {
  const given = Object.values(shares).filter((share) => share !== undefined);
  return given.length > 0 && given.reduce((sum, share) => sum + share, 0) < 1;
}

/** The share of a quota that requests of a priority may not take, because it is kept for more important ones. */
export function shareKeptFrom(priority: Priority, reserved: ReservedShares): number {
  const more = PRIORITIES.slice(0, PRIORITIES.indexOf(priority)) as (keyof ReservedShares)[];
  return more.reduce((sum, each) => sum + (reserved[each] ?? 0), 0);
}
