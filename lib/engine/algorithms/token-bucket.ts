import { readOptions } from '../options/check-options.js';
import { words } from '../options/kinds.js';
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
import type { WarmingBucketOptions } from './warm-up/ramp.js';

/**
 * A token bucket (RFC 2697 names its parts): it holds up to `burst` tokens, a request of cost c takes c of them, and `rate`
 * tokens are added per interval: tokens = min(burst, tokens + elapsed x rate / interval).
 */
export type TokenBucketOptions = {
  /** The algorithm. */
  algo: 'token-bucket';
  /** The number of tokens added per interval: a whole number >= 1. */
  rate: number;
  /** The interval of the rate: milliseconds or a duration such as `'10s'`, at most 1 year. */
  interval: Duration;
  /**
   * The number of tokens in a full bucket: a whole number >= 1.
   * @default rate
   */
  burst?: number | undefined;
  /**
   * The way in which tokens are added: `'greedy'` adds them evenly, `'intervally'` adds all `rate` at once at the end of each whole
   * interval, counted from the request that found the bucket full.
   * @default 'greedy'
   */
  refill?: 'greedy' | 'intervally' | undefined;
} & WarmingBucketOptions;

export interface TokenBucketState extends ArrivalState {
  /** The size of the bucket that the debt refers to, in single precision as the script stores it. */
  burst: number;
}

const options = {
  ...burstOptions,
  refill: {
    kind: words(['greedy', 'intervally']),
    text: "How tokens are refilled: 'greedy' evenly, 'intervally' all at once.",
    default: 'greedy',
  },
} as const;

/** The missing tokens of a bucket are its debt. It is full when there is no debt. */
export const tokenBucket: Algorithm<TokenBucketOptions, ArrivalParameters, TokenBucketState> = {
  name: 'token-bucket',
  code: 'td',
  options,

  compile(given: TokenBucketOptions, location: string) {
    const { rate, interval, burst: quota = rate, refill } = readOptions(location, given, options);
    const scale = scaleOf(rate, interval, quota, location, refill === 'intervally');
    return { quota, scale, capacity: quota * scale.unit };
  },
  share: shareOfBurst,

  ...counting,
  ...dividing,
  scriptParameters: ({ scale }) => [scale.unit, scale.speed, scale.tick, scale.interval, scale.step],
  warming: { code: 'tw' },
  open(parameters, stored, now) {
    const { scale, quota } = parameters;
    const state = { now, migrated: false, scale, debt: 0, time: now, burst: quota };
    reopen(parameters, stored, now, state);
    return state;
  },
  reopen,
  reservation: {
    ...reserving,
    ticketUnder: (before, { scale, quota }, ticket, now, share) => {
      const old = before.scale;
      let units = unitsUntil(old, ticket, now);
      if (old.step > 1) {
        // Whole intervals, as if the units of the last one were added one by one.
        const atOnce = (old.step * old.speed) / old.unit;
        units = (Math.ceil(units / atOnce) - 1 + share) * atOnce;
      }
      // Units used of a larger burst have to drain first. Units by which a burst grows have to be added.
      const ticks = ticksFor(scale, units + Math.max(0, before.quota - quota));
      return ticketAfter(scale, now, Math.ceil(ticks / scale.step) * scale.step);
    },
  },
};

function reopen(
  parameters: ArrivalParameters,
  stored: TokenBucketState | undefined,
  now: number,
  state: TokenBucketState,
): void {
  openArrival(parameters, stored, now, state);
  state.burst = Math.fround(parameters.quota);
  if (stored === undefined || state.debt === 0) return;
  // A larger bucket keeps the tokens of the smaller one, and the rest has to be added. A bucket that was full stays full.
  if (stored.burst < state.burst) {
    state.debt += (state.burst - stored.burst) * parameters.scale.unit;
    state.migrated = true;
  } else state.burst = stored.burst;
}
