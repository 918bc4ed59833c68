import { configError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';

/**
 * Whole numbers for a rate. A unit weighs `unit`, and `speed` of that weight drains per tick, so that exactly `rate` units drain
 * per interval: with g = gcd(interval, rate), unit = interval / g and speed = rate / g. Fractions are never rounded away.
 */
export interface Scale {
  readonly unit: number;
  readonly speed: number;
  /** The microseconds of a tick: 1, or 1,000 if microseconds would exceed 2^53. */
  readonly tick: number;
  /** The interval in ticks. */
  readonly interval: number;
  /** Weight drains at the end of every `step` ticks: 1, or the interval if a refill comes all at once. */
  readonly step: number;
}

/** The maximum units of a window that varies, and the maximum credits. Their sum is exact. */
export const MOST_UNITS = 2 ** 51;

/** The maximum weight that can be owed. Above it, weights are not whole numbers. */
export const MAX_OWED = Number.MAX_SAFE_INTEGER;

/** Room for sums of two weights below 2^53. */
const MAX_WEIGHT = 2 ** 52 - 1;

/**
 * The scale of `rate` units per interval (in microseconds) with at most `units` at once, draining evenly or all at once. Throws
 * if no scale is exact.
 */
export function scaleOf(rate: number, interval: number, units: number, location: string, atOnce = false): Scale {
  for (const tick of [1, 1000]) {
    if (interval % tick !== 0) continue;
    const ticks = interval / tick;
    const divisor = gcd(ticks, rate);
    const unit = ticks / divisor;
    if (units * unit > MAX_WEIGHT) continue;
    return { unit, speed: rate / divisor, tick, interval: ticks, step: atOnce ? ticks : 1 };
  }
  throw configError('SLUICE_INEXACT_RATE', messages.tooFine(location, rate, interval, units));
}

/** The maximum number of units that drain in `micros`. */
export function unitsWithin({ unit, speed, tick }: Scale, micros: number): number {
  return Math.ceil((Math.ceil(micros / tick) * speed) / unit);
}

export function sameScale(a: Scale, b: Scale): boolean {
  return a === b || (a.unit === b.unit && a.speed === b.speed && a.tick === b.tick && a.step === b.step);
}

/**
 * `amount` x `to` / `from`, rounded up. For whole numbers below 2^53 the result is exact if it is below 2^53, regardless of the
 * intermediate product; beyond that, the nearest double.
 */
export function inProportion(amount: number, to: number, from: number): number {
  const part = amount % from;
  const whole = ((amount - part) / from) * to;
  if (part === 0) return whole;
  // Long division of part x to, bit by bit of `to`: no intermediate number exceeds the divisor.
  let quotient = 0;
  let rest = 0;
  const add = (more: number) => {
    if (more >= from - rest) {
      rest -= from - more;
      quotient++;
    } else rest += more;
  };
  let bit = 1;
  while (bit * 2 <= to) bit *= 2;
  for (; bit >= 1; bit /= 2) {
    quotient *= 2;
    add(rest);
    if (Math.floor(to / bit) % 2 === 1) add(part);
  }
  return whole + quotient + (rest > 0 ? 1 : 0);
}

export function gcd(a: number, b: number): number {
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}

/** The units that drain from `now` until a tick. */
export function unitsUntil({ unit, speed, tick }: Scale, until: number, now: number): number {
  return ((until - Math.floor(now / tick)) * speed) / unit;
}

/** The ticks in which this many units drain. */
export function ticksFor({ unit, speed }: Scale, units: number): number {
  return Math.max(0, Math.ceil((units * unit) / speed));
}

/** The microseconds in which this many units drain, from any start. */
export function timeFor(scale: Scale, units: number): number {
  return Math.ceil(ticksFor(scale, units) / scale.step) * scale.step * scale.tick;
}

/** The tick that is `ticks` ticks after `now`, and its time. */
export function ticketAfter(scale: Scale, now: number, ticks: number): { ticket: number; time: number } {
  const ticket = Math.floor(now / scale.tick) + ticks;
  return { ticket, time: ticket * scale.tick };
}
