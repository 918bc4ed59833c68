import type { Feature } from '../feature.js';
import { LimitParts } from './limit-parts.js';
import type { ReservedShares, ReservingLimitOptions } from './options.js';

/** Keeps shares of a limit's quota for important requests. */
export const priorities: Feature<ReservedShares> = {
  terms: ({ reserveFor }: ReservingLimitOptions) => reserveFor && { ...reserveFor },
  of: (limit, reserved) => new LimitParts(limit, reserved),
};
