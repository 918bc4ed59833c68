import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { priorityMessages } from '../errors/messages/priority.js';
import { PRIORITIES, type Priority } from './priority.js';

/**
 * The shares of a limit's quota that are kept for important requests: one for each priority, which only requests of it, or of a
 * more important one, may take. Each is more than 0, and together they are less than 1.
 */
export type ReservedShares = Partial<Record<Exclude<Priority, 'sheddable'>, number>>;

/** The priorities for which something can be kept: everybody may take what is kept for the last one. */
export const RESERVABLE = PRIORITIES.slice(0, -1) as readonly (keyof ReservedShares)[];

/** Reads a limit's `reserveFor`; nothing if it keeps nothing. */
export function reserveTerms(
  { reserveFor, prefetch, blockFor }: { reserveFor?: unknown; prefetch?: unknown; blockFor?: unknown },
  location: string,
): ReservedShares | undefined {
  if (reserveFor === undefined) return undefined;
  if (!isShares(reserveFor)) {
    const wants = priorityMessages.reserveForWants(RESERVABLE);
    throw new RateLimitConfigError(messages.wrongOption(location, 'reserveFor', reserveFor, wants));
  }
  // Units that were taken in advance are anybody's; and a block refuses everybody.
  if (prefetch !== undefined) throw new RateLimitConfigError(priorityMessages.reserveForWith(location, 'prefetch'));
  if (blockFor !== undefined) throw new RateLimitConfigError(priorityMessages.reserveForWith(location, 'blockFor'));
  return { ...reserveFor };
}

/** Whether a value is what `reserveFor` wants. */
export function isShares(value: unknown): value is ReservedShares {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const shares = Object.entries(value).filter(([, share]) => share !== undefined);
  if (!shares.every(([priority, share]) => RESERVABLE.includes(priority as never) && share > 0)) return false;
  const sum = shares.reduce((total, [, share]) => total + (typeof share === 'number' ? share : NaN), 0);
  return shares.length > 0 && sum < 1;
}

/** The share of a quota that requests of a priority may not take: what is kept for more important ones. */
export function shareKeptFrom(priority: Priority, reserved: ReservedShares): number {
  const more = PRIORITIES.slice(0, PRIORITIES.indexOf(priority)) as (keyof ReservedShares)[];
  return more.reduce((sum, each) => sum + (reserved[each] ?? 0), 0);
}
