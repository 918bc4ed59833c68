import { PRIORITIES, type Priority } from './priority.js';

/**
 * The shares of a limit's quota that are kept for important requests: one for each priority, which only requests of that
 * priority, or of a more important one, may take. Each is more than 0, and their sum is less than 1.
 */
export type ReservedShares = Partial<Record<Exclude<Priority, 'sheddable'>, number>>;

/** The priorities for which shares can be kept: everybody may take what would be kept for the last one. */
export const RESERVABLE = PRIORITIES.slice(0, -1) as readonly (keyof ReservedShares)[];

/** Whether shares leave something for everybody. */
export function isReservable(shares: ReservedShares): boolean {
  const given = Object.values(shares).filter((share) => share !== undefined);
  return given.length > 0 && given.reduce((sum, share) => sum + share, 0) < 1;
}

/** The share of a quota that requests of a priority may not take: what is kept for more important ones. */
export function shareKeptFrom(priority: Priority, reserved: ReservedShares): number {
  const more = PRIORITIES.slice(0, PRIORITIES.indexOf(priority)) as (keyof ReservedShares)[];
  return more.reduce((sum, each) => sum + (reserved[each] ?? 0), 0);
}
