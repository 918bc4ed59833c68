import ms from 'ms';
import type { AlgorithmOptions, Duration } from '../../../lib/index.js';
import type { RateOptions } from '../../support/limits/arbitraries.js';

/**
 * What each algorithm should decide, told as naively as possible: a list of all that was ever allowed, exact fractions, no
 * state. For clocks that go forward. Times are whole microseconds.
 */
export interface Answer {
  allowed: boolean;
  /** After the charge, if there was one. */
  remaining: number;
  delayMs: number;
}

export type Model = (now: bigint, cost: bigint) => Answer;

interface Event {
  readonly time: bigint;
  readonly cost: bigint;
}

type OptionsOf<A extends RateOptions['algo']> = Extract<RateOptions, { algo: A }>;

export function microsOf(duration: Duration): bigint {
  return BigInt(Math.round((typeof duration === 'number' ? duration : ms(duration as ms.StringValue)) * 1000));
}

/** `tick` is what the limit's clock is read in, where microseconds would be too fine. */
export function modelOf(options: RateOptions, tick: bigint): Model {
  switch (options.algo) {
    case 'fixed-window':
      return counting(BigInt(options.rate), unitsInFixedWindow(options));
    case 'calendar-window':
      return counting(BigInt(options.rate), unitsInCalendarWindow(options));
    case 'sliding-window':
      return counting(BigInt(options.rate), unitsInSlices(options));
    case 'sliding-log':
      return counting(BigInt(options.rate), unitsInLog(options));
    case 'token-bucket': {
      const quota = BigInt(options.burst ?? options.rate);
      return counting(
        quota,
        options.refill === 'intervally' ? missingIntervally(options) : missingGreedy(options),
        tick,
      );
    }
    case 'gcra':
      return gcraModel(options, tick);
    default:
      return leakyModel(options, tick);
  }
}

/** A request fits if what was used before it and what it takes are no more than the quota. */
function counting(quota: bigint, usedAt: (events: readonly Event[], now: bigint) => bigint, tick = 1n): Model {
  const events: Event[] = [];
  return (now, cost) => {
    const time = now - (now % tick);
    const allowed = usedAt(events, time) + cost <= quota;
    if (allowed) events.push({ time, cost });
    return { allowed, remaining: Number(quota - usedAt(events, time)), delayMs: 0 };
  };
}

function sum(events: readonly Event[]): bigint {
  return events.reduce((total, { cost }) => total + cost, 0n);
}

function unitsInFixedWindow({ interval }: OptionsOf<'fixed-window'>) {
  return (events: readonly Event[], now: bigint) => {
    let end = 0n;
    let units = 0n;
    for (const event of events) {
      if (event.time >= end) {
        end = event.time + microsOf(interval);
        units = 0n;
      }
      units += event.cost;
    }
    return now < end ? units : 0n;
  };
}

function unitsInLog({ interval }: OptionsOf<'sliding-log'>) {
  return (events: readonly Event[], now: bigint) => sum(events.filter(({ time }) => time > now - microsOf(interval)));
}

/** The slice of each event counts until its last microsecond has left (now - interval, now]. */
function unitsInSlices({ interval, slices = 10 }: OptionsOf<'sliding-window'>) {
  const length = ceilDiv(microsOf(interval), BigInt(slices));
  return (events: readonly Event[], now: bigint) =>
    sum(events.filter(({ time }) => (time / length) * length + length - 1n > now - microsOf(interval)));
}

function unitsInCalendarWindow({ period, timezone = 'UTC' }: OptionsOf<'calendar-window'>) {
  return (events: readonly Event[], now: bigint) => {
    const window = calendarLabel(now, period, timezone);
    return sum(events.filter(({ time }) => calendarLabel(time, period, timezone) === window));
  };
}

type BudgetOptions = Extract<AlgorithmOptions, { algo: 'budget' }>;

/** A budget as a list of all that was ever reserved or spent, each with what it counts for. */
export function budgetModel({ limit, period, timezone = 'UTC', hold = '5m', onLapse = 'charge' }: BudgetOptions) {
  const events: { time: bigint; cost: bigint; isHeld: boolean; actual?: bigint }[] = [];
  const isIn = (now: bigint) => {
    const window = calendarLabel(now, period, timezone);
    return ({ time }: { time: bigint }) => calendarLabel(time, period, timezone) === window;
  };
  const countsFor = (now: bigint) => (event: (typeof events)[number]) => {
    if (event.actual !== undefined) return event.actual;
    return event.isHeld && onLapse === 'release' && event.time + microsOf(hold) <= now ? 0n : event.cost;
  };
  const used = (now: bigint) =>
    events
      .filter(isIn(now))
      .map(countsFor(now))
      .reduce((total, units) => total + units, 0n);
  return {
    decide(now: bigint, cost: bigint, isHeld: boolean) {
      const allowed = used(now) + cost <= BigInt(limit);
      if (allowed) events.push({ time: now, cost, isHeld });
      const left = BigInt(limit) - used(now);
      return { allowed, remaining: Number(left < 0n ? 0n : left) };
    },
    /** Settles the reservation of a number, once. */
    settle(now: bigint, number: number, actual: bigint): void {
      const held = events.filter((event) => event.isHeld)[number]!;
      if (isIn(now)(held)) held.actual ??= actual;
    },
  };
}

/** What a token bucket lacks, rounded up to whole tokens. */
function missingGreedy({ rate, interval, burst = rate }: OptionsOf<'token-bucket'>) {
  // A token counts as `interval` parts, so that `rate` parts flow in a microsecond.
  const part = microsOf(interval);
  const full = BigInt(burst) * part;
  return (events: readonly Event[], now: bigint) => {
    let parts = full;
    let last = 0n;
    for (const { time, cost } of events) {
      parts = least(full, parts + (time - last) * BigInt(rate)) - cost * part;
      last = time;
    }
    return ceilDiv(full - least(full, parts + (now - last) * BigInt(rate)), part);
  };
}

/** Tokens come all at once at whole intervals from the request that found the bucket full. */
function missingIntervally({ rate, interval, burst = rate }: OptionsOf<'token-bucket'>) {
  const full = BigInt(burst);
  return (events: readonly Event[], now: bigint) => {
    let tokens = full;
    let anchor = 0n;
    const refill = (time: bigint) => {
      const whole = (time - anchor) / microsOf(interval);
      tokens = least(full, tokens + whole * BigInt(rate));
      anchor = tokens === full ? time : anchor + whole * microsOf(interval);
    };
    for (const { time, cost } of events) {
      refill(time);
      tokens -= cost;
    }
    refill(now);
    return full - tokens;
  };
}

/** The table's formula; times are in parts of a microsecond, of which there are `rate`, so that T = interval / rate is whole. */
function gcraModel({ rate, interval, burst = rate }: OptionsOf<'gcra'>, tick: bigint): Model {
  const t = microsOf(interval);
  const room = BigInt(burst) * t;
  let tat = 0n;
  return (now, cost) => {
    const time = (now - (now % tick)) * BigInt(rate);
    const next = most(tat, time) + cost * t;
    const allowed = next - room <= time;
    if (allowed) tat = next;
    return { allowed, remaining: Number((time + room - most(tat, time)) / t), delayMs: 0 };
  };
}

/** Every unit leaves by itself, one T after the unit before it or at once. At most `queue` of them wait. */
function leakyModel({ rate, interval, queue = rate }: OptionsOf<'leaky-bucket'>, tick: bigint): Model {
  const t = microsOf(interval);
  let departures: bigint[] = [];
  return (now, cost) => {
    const time = (now - (now % tick)) * BigInt(rate);
    // Those that left are of no interest any more, but for the last.
    departures = departures.filter((at, index) => at > time || index === departures.length - 1);
    const waiting = () => departures.filter((at) => at > time).length;
    const join = () => departures.push(departures.length === 0 ? time : most(time, departures.at(-1)! + t));
    const leave = (units: number) => (departures = departures.slice(0, departures.length - units));
    for (let i = 0n; i < cost; i++) join();
    const allowed = waiting() <= queue;
    if (!allowed) leave(Number(cost));
    const at = ceilDiv(departures.at(-1) ?? 0n, BigInt(rate) * tick) * tick;
    const delayMs = allowed ? Number(ceilDiv(most(0n, at - now), 1000n)) : 0;
    // What would join still, until one too many waits.
    let wait = waiting();
    let remaining = 0;
    for (;;) {
      join();
      if (departures.at(-1)! > time) wait++;
      if (wait > queue) break;
      remaining++;
    }
    leave(remaining + 1);
    return { allowed, remaining, delayMs };
  };
}

/** The calendar's fields at a time, as the platform's own calendar knows them: those of one window are alike. */
export function calendarLabel(
  micros: bigint,
  period: OptionsOf<'calendar-window'>['period'],
  timezone: string,
): string {
  const parts = formatOf(timezone).formatToParts(new Date(Number(micros / 1000n)));
  const { year, month, day, hour, minute, second, timeZoneName } = Object.fromEntries(
    parts.map(({ type, value }) => [type, value]),
  );
  const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  switch (period) {
    case 'year':
      return year!;
    case 'quarter':
      return `${year} ${Math.ceil(Number(month) / 3)}`;
    case 'month':
      return `${year} ${month}`;
    case 'week':
      // The Monday at or before it.
      return new Date(date.getTime() - ((date.getUTCDay() + 6) % 7) * 86_400_000).toISOString();
    case 'day':
      return date.toISOString();
    case 'hour':
      return [year, month, day, hour, timeZoneName].join(' ');
    case 'minute':
      return [year, month, day, hour, minute, timeZoneName].join(' ');
    default:
      return [year, month, day, hour, minute, second, timeZoneName].join(' ');
  }
}

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(timeZone: string): Intl.DateTimeFormat {
  let format = formats.get(timeZone);
  if (format === undefined) {
    const fields = { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric' } as const;
    const rest = { second: 'numeric', timeZoneName: 'longOffset', hourCycle: 'h23', timeZone } as const;
    format = new Intl.DateTimeFormat('en-US', { ...fields, ...rest });
    formats.set(timeZone, format);
  }
  return format;
}

function ceilDiv(value: bigint, by: bigint): bigint {
  return (value + by - 1n) / by;
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function most(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
