import { issuesTickets } from '../../../engine/algorithms/algorithm.js';
import { BoundedMap, Kept } from '../../../engine/util/bounded-maps.js';
import type { LearntRate, Lesson, RateLesson } from '../lesson.js';
import { blockFor } from './block.js';
import type { View } from './counter-view.js';

const MINUTE = 60_000_000;
const SECOND = 1_000_000;
/** How long rates are kept, in microseconds; how many; and the bytes that they may take. */
const RATE_KEPT_FOR = 3_600_000_000;
const MAX_RATES = 10_000;
const MAX_BYTES = 5_000_000;
const RATE_BYTES = 250;
/** Maximum units per minute; and the share of a minute's units that may be sent at once: a quarter of a second. */
const MOST_RATE = 60_000_000_000;
const BURSTS = 240;
const SLOW_GROWTH = 16;

/** The known facts about a rate. The script stores the same in a key of its own. */
class Rate extends Kept {
  /** Units per minute. */
  units = 0;
  /** The rate from which it grows slowly; 0 if there is none. */
  threshold = 0;
  refusedAt = 0;
  /** The last pause. */
  pause = 0;
  /** The upstream's quota and window; 0 while unknown. */
  quota = 0;
  window = 0;
  /** True if the whole quota comes back at once. */
  isAtOnce = false;
  largest = 0;
  learntAt = 0;
}

/**
 * Finds the rate at which an upstream allows calls, the way TCP finds the rate of a path (RFC 5681: slow start, congestion avoidance). The
 * rate doubles in every second in which it is used. From half of the last rejected rate on, it grows by a sixteenth of that per second.
 * Each rejection halves it, once for all calls that were in flight. A rejection without a wait pauses all calls, twice as long each time
 * (RFC 6298); a rejection after such a pause only shows that the pause was too short. `lua/driver/learn-rate.lua` does the same.
 */
export class LearntRates {
  private readonly rates = new BoundedMap<Rate>(MAX_RATES, MAX_BYTES);

  /** Returns the rate, and if the counter was changed. */
  learn(key: string, view: View, lesson: Lesson, learnt: RateLesson): { rate: LearntRate; changed: boolean } {
    const { limit, state } = view;
    const { now } = state;
    const { remaining, blockMs } = lesson;
    const rate = this.rateOf(key, learnt, now);
    adopt(rate, lesson, learnt);
    let changed = false;
    // Calls sent before the last rejection reveal nothing about the rate since.
    if (now - micros(lesson.ageMs) >= rate.refusedAt) {
      if (learnt.refused) {
        if (rate.quota === 0 || remaining !== 0)
          changed = slowDown(rate, view, blockMs !== undefined, learnt.slowestMs);
      } else if (learnt.accepted > 0 && limit.algorithm.remaining(limit.parameters, state) * 2 <= limit.quota) {
        grow(rate, learnt.accepted);
      }
    }
    rate.learntAt = now;
    this.rates.put(rate, RATE_BYTES + 2 * key.length, false);
    const answer = answerOf(rate, learnt.slowestMs);
    return { rate: answer, changed: forgive(view, answer.burst) || changed };
  }

  forget(key: string): void {
    const rate = this.rates.get(key);
    if (rate !== undefined) this.rates.delete(rate);
  }

  clear(): void {
    this.rates.clear();
  }

  private rateOf(key: string, { largest }: RateLesson, now: number): Rate {
    const known = this.rates.get(key);
    const rate =
      known !== undefined && now - known.learntAt < RATE_KEPT_FOR ? known : fresh(known ?? new Rate(key), largest);
    rate.largest = Math.max(rate.largest, largest);
    rate.refusedAt = Math.min(rate.refusedAt, now);
    return rate;
  }
}

function fresh(rate: Rate, largest: number): Rate {
  rate.units = Math.min(60 * largest, MOST_RATE);
  rate.threshold = rate.refusedAt = rate.pause = rate.quota = rate.window = rate.largest = 0;
  rate.isAtOnce = false;
  return rate;
}

/** A quota that is smaller than the largest call doesn't apply to these calls. */
function fastest({ quota, window, largest }: Rate): number {
  return quota < largest ? MOST_RATE : Math.min(MOST_RATE, (quota * MINUTE) / window);
}

function least({ largest }: Rate, slowestMs: number): number {
  return Math.min(MOST_RATE, (largest * MINUTE) / micros(slowestMs));
}

/** Applies the upstream's limit. If its window isn't reported, it is as long as the longest time until its reset. */
function adopt(rate: Rate, { resetAfterMs, window: tag }: Lesson, { quota = 0, windowMs }: RateLesson): void {
  const isNew = quota !== rate.quota;
  const isAtOnce = tag !== undefined;
  let window = windowMs === undefined ? 0 : micros(windowMs);
  const reset = resetAfterMs === undefined ? 0 : micros(resetAfterMs);
  if (window <= 0 && isAtOnce && reset > 0) window = isNew ? reset : Math.max(rate.window, reset);
  if (quota < rate.largest || window <= 0) return;
  Object.assign(rate, { quota, window, isAtOnce });
  if (isNew) rate.threshold = rate.units = fastest(rate);
}

function slowDown(rate: Rate, view: View, hasWait: boolean, slowestMs: number): boolean {
  const { now } = view.state;
  rate.refusedAt = now;
  if (rate.pause === 0) rate.threshold = rate.units = Math.max(least(rate, slowestMs), rate.units / 2);
  if (hasWait) return false;
  rate.pause = Math.min(Math.max(rate.pause * 2, SECOND), micros(slowestMs));
  if (rate.pause <= 0 || now + rate.pause <= (view.block?.until ?? 0)) return false;
  view.block = blockFor(rate.pause, now, view.block ?? view.past);
  view.past = undefined;
  return true;
}

function grow(rate: Rate, units: number): void {
  let more = 60 * units;
  if (rate.threshold > 0 && rate.units >= rate.threshold) {
    more = (more * rate.threshold) / (SLOW_GROWTH * rate.units);
  }
  rate.units = Math.min(rate.units + more, fastest(rate));
  rate.pause = 0;
}

/** A debt beyond the burst would take much longer to drain than it did to build up under the earlier rate. */
function forgive({ limit, state }: View, burst: number): boolean {
  const { algorithm, parameters, quota } = limit;
  if (issuesTickets(algorithm)) return false;
  const excess = quota - algorithm.remaining(parameters, state) - burst;
  if (excess <= 0) return false;
  algorithm.give(parameters, state, excess);
  return true;
}

function answerOf(rate: Rate, slowestMs: number): LearntRate {
  const { quota, window, largest } = rate;
  if (rate.isAtOnce && quota >= largest && rate.units >= fastest(rate)) {
    return { rate: quota, intervalMs: Math.ceil(window / 1000), burst: quota };
  }
  const units = Math.max(1, Math.floor(Math.max(rate.units, least(rate, slowestMs))));
  return { rate: units, intervalMs: MINUTE / 1000, burst: Math.max(Math.ceil(units / BURSTS), largest) };
}

function micros(ms: number): number {
  return Math.round(ms * 1000);
}
