import { DEFAULT_PRIORITY, PRIORITIES, type Priority } from '../../../engine/limits/arguments.js';
import { number, object } from '../../../engine/options/kinds.js';
import type { OptionRow, OptionRows } from '../../../engine/options/option-row.js';
import type { Feature } from '../feature.js';
import type { FeaturedLimit, LimitFeature } from '../../../engine/limits/limit-feature.js';
import { unitsOf, withQuota } from '../../../engine/algorithms/share.js';
import { bare } from '../../../engine/util/objects.js';

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

/** The parts of one limit's quota that requests may take, by priority. */
function limitParts({ algorithm }: FeaturedLimit, reserved: ReservedShares): LimitFeature {
  return bare<LimitFeature>({
    name: 'priorities',
    versions: {
      byPriority: true,
      // The most important requests may use the whole quota.
      ofAll: { priority: PRIORITIES[0] },
      idOf: ({ priority = DEFAULT_PRIORITY }: { readonly priority?: Priority }) => priority,
      make(parameters, { priority = DEFAULT_PRIORITY }: { readonly priority?: Priority }) {
        const { quota } = parameters;
        // Other requests always get at least one unit.
        const kept = Math.min(quota - 1, unitsOf(shareKeptFrom(priority, reserved), quota));
        if (kept === 0) return undefined;
        const own = { ...withQuota(algorithm, parameters, quota - kept), kept };
        return { parameters: own, isPart: true, metBy: { priority }, line: priority };
      },
    },
    ofPart: () => reserved,
  });
}

/** Keeps shares of a limit's quota for important requests. */
export const priorities: Feature<ReservedShares> = {
  terms: ({ reserveFor }: ReservingLimitOptions) => reserveFor && { ...reserveFor },
  of: (limit, reserved) => limitParts(limit, reserved),
};
