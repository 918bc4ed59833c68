import { readOptions } from '../options/check-options.js';
import { whole } from '../options/kinds.js';
import type { Duration } from '../options/values.js';
import type { Algorithm, Parameters, State } from './algorithm.js';
import { holdOptions, type HoldOptions, rateOptions } from './common-options.js';
import { ofInterval } from './share.js';

/**
 * A sliding log: a request of cost c is allowed if the units allowed in (t - interval, t] + c <= rate, exactly. Each request is stored for
 * `interval`.
 */
export interface SlidingLogOptions extends HoldOptions {
  /** The algorithm. */
  algo: 'sliding-log';
  /** The number of units in any period of `interval`: a whole number from 1 to 8,388,607. */
  rate: number;
  /** The length of the window: milliseconds or a duration such as `'15m'`, at most 1 year. */
  interval: Duration;
}

/**
 * The script stores sums modulo 2^24, which take 5 bytes in a Redis list; with more units, they would be ambiguous. A penalty may double
 * the sum.
 */
const MAX_RATE = 2 ** 23 - 1;

export interface SlidingLogParameters extends Parameters {
  readonly interval: number;
}

/** Requests, oldest first: `sums[i]` is the sum of all charges up to and including the request at `times[i]`. */
interface Log {
  times: number[];
  sums: number[];
  /** The index of the first request that still counts. The requests before it are removed now and then. */
  head: number;
  /** The sum before that request. */
  base: number;
}

/** A log is cut when it has more requests than this before its head, and more before it than after it. */
const MAX_FORGOTTEN = 64;

export interface SlidingLogState extends State {
  readonly log: Log;
  /** The index of the first request that still counts. */
  readonly first: number;
  /** The time of a request: now, or the time of the last request while the clock catches up. */
  readonly time: number;
  /** True if the clock was set back, so that everything counts as if it had happened now. */
  readonly collapsed: boolean;
  /** Units that were refunded, starting with the oldest. */
  given: number;
  /** Units that were added now. */
  added: number;
  used: number;
}

const options = { ...rateOptions, rate: { ...rateOptions.rate, kind: whole(1, MAX_RATE) }, ...holdOptions } as const;

export const slidingLog: Algorithm<SlidingLogOptions, SlidingLogParameters, SlidingLogState> = {
  name: 'sliding-log',
  code: 'sl',
  extraKeys: ['block'],
  options,
  borrowing: true,

  compile(given, location) {
    const { rate, interval } = readOptions(location, given, options);
    return { quota: rate, interval };
  },
  ...ofInterval,
  scriptParameters: ({ interval }) => [interval],
  work: () => 4,
  prefetch: {
    // Units used in any period of `interval` were charged in a period of interval + ttl.
    parameters: ({ quota, interval }, ttl) => ({ quota, interval: interval + ttl }),
    endsWithWindow: false,
  },
  holds: {
    windows: ({ interval }) => String(interval),
    counts: ({ interval }, state, chargedAt, time) => chargedAt > Math.max(time, state.time) - interval,
    // Twice the quota stays below the modulus.
    most: ({ quota }) => 2 * quota,
  },

  open({ interval }, stored, now) {
    const log = stored?.log ?? { times: [], sums: [], head: 0, base: 0 };
    const last = log.times.at(-1) ?? now;
    const collapsed = last - now >= interval;
    const time = Math.max(now, last);
    const first = search(log.times, log.head, (at) => at > time - interval);
    const used = first === log.times.length ? 0 : log.sums.at(-1)! - sumBefore(log, first);
    const rest = { given: 0, added: 0, used };
    return { now, migrated: collapsed && used > 0, log, first, time: collapsed ? now : time, collapsed, ...rest };
  },
  fits: ({ quota }, { used }, cost) => used + cost <= quota,
  take(_, state, cost) {
    state.used += cost;
    state.added += cost;
  },
  give({ interval }, state, units, _ticket, chargedAt) {
    if (chargedAt !== undefined && chargedAt <= state.time - interval) return;
    // The oldest units are removed first, so that the rest never counts for too short a time.
    const given = Math.min(units, state.used);
    state.used -= given;
    state.given += given;
  },
  save(_, state) {
    const { log, first, time, collapsed, used, added, given } = state;
    const base = sumBefore(log, first) + given;
    const end = base + used;
    const keep = collapsed ? log.times.length : search(log.sums, first, (sum) => sum > base);
    forget(log, keep, base);
    if (used > 0 && (added > 0 || collapsed)) {
      if (log.head < log.times.length && log.times.at(-1) === time) log.sums[log.sums.length - 1] = end;
      else {
        log.times.push(time);
        log.sums.push(end);
      }
    }
    return state;
  },
  bytes: ({ log }) => 350 + 20 * log.times.length,

  remaining: ({ quota }, { used }) => quota - used,
  retryAfter({ quota, interval }, { log, first, time, collapsed, given, now, used }, cost) {
    const excess = sumBefore(log, first) + given + used + cost - quota;
    const freed = collapsed ? log.times.length : search(log.sums, first, (sum) => sum >= excess);
    return (log.times[freed] ?? time) + interval - now;
  },
  resetAfter: ({ interval }, { log, time, collapsed, added, now, used }) =>
    used === 0 ? 0 : (added > 0 || collapsed ? time : log.times.at(-1)!) + interval - now,
};

function sumBefore({ sums, head, base }: Log, index: number): number {
  return index === head ? base : sums[index - 1]!;
}

/** Moves the head of the log. Removing the requests before it is amortised over many requests. */
function forget(log: Log, head: number, base: number): void {
  log.head = head;
  log.base = base;
  if (head > MAX_FORGOTTEN && head * 2 > log.times.length) {
    log.times.splice(0, head);
    log.sums.splice(0, head);
    log.head = 0;
  }
}

/** The first index from `low` on whose value passes the test. Values that pass come last. */
function search(values: readonly number[], low: number, test: (value: number) => boolean): number {
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (test(values[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}
