import { readOptions } from '../options/check-options.js';
import type { Duration } from '../options/values.js';
import type { Algorithm } from './algorithm.js';
import {
  type ArrivalParameters,
  type ArrivalState,
  counting,
  dividing,
  openArrival,
  reserving,
} from './arrival-time.js';
import { burstOptions } from './common-options.js';
import { ticketAfter, scaleOf, ticksFor, unitsUntil } from './scale.js';
import { shareOfBurst } from './share.js';
import type { WarmingLimitOptions } from './warm-up/ramp.js';

/**
 * The generic cell rate algorithm (ITU-T I.371): an even `rate`, with room for a `burst`. With T = interval / rate, a request of
 * cost c moves the theoretical arrival time: tat' = max(tat, t) + c x T, and is allowed if tat' - burst x T <= t.
 */
export interface GcraOptions extends WarmingLimitOptions {
  /** The algorithm. */
  algo: 'gcra';
  /** The number of units per interval in the long run: a whole number >= 1. */
  rate: number;
  /** The interval of the rate: milliseconds or a duration such as `'10s'`, at most 1 year. */
  interval: Duration;
  /**
   * The number of units allowed at once after a pause: a whole number >= 1.
   * @default rate
   */
  burst?: number | undefined;
}

export const gcra: Algorithm<GcraOptions, ArrivalParameters, ArrivalState> = {
  name: 'gcra',
  code: 'gd',
  options: burstOptions,

  compile(given: GcraOptions, location: string) {
    const { rate, interval, burst: quota = rate } = readOptions(location, given, burstOptions);
    const scale = scaleOf(rate, interval, quota, location);
    return { quota, scale, capacity: quota * scale.unit };
  },
  share: shareOfBurst,

  ...counting,
  ...dividing,
  warming: { code: 'gw' },
  open(parameters, stored, now) {
    const state = { now, migrated: false, scale: parameters.scale, debt: 0, time: now };
    openArrival(parameters, stored, now, state);
    return state;
  },
  reopen: openArrival,
  reservation: {
    ...reserving,
    ticketUnder: (before, { scale, quota }, ticket, now) =>
      // Units used of a larger burst have to drain first.
      ticketAfter(scale, now, ticksFor(scale, unitsUntil(before.scale, ticket, now) + before.quota - quota)),
  },
};
