import { RateLimitArgumentError } from '../engine/errors/errors.js';
import { messages } from '../engine/errors/messages/general.js';
import { toMs } from '../engine/limits/arguments.js';
import type { Duration } from '../engine/options/values.js';
import { MemoryStore } from '../storage/features/own-stores.js';

/** The default start of a clock: a fixed time, so that a failing test is reproducible. */
const START = '2030-01-01T00:00:00Z';

/**
 * A clock that only moves when a test moves it.
 *
 * @example
 * ```ts
 * const clock = new TestClock();
 * clock.advance('10s');
 * ```
 */
export class TestClock {
  /** @internal Whole microseconds since the epoch. */
  protected micros: number;

  /**
   * Creates a clock that only moves when a test moves it.
   *
   * @param start where it starts: a date, or anything that `new Date` reads; default: the start of 2030 (UTC). Throws
   * `RateLimitArgumentError` for anything else
   */
  constructor(start: Date | number | string = START) {
    this.micros = read('start', start);
  }

  /** The time in whole microseconds since the epoch, as stores take it: `new MemoryStore({ clock: clock.now })`. */
  readonly now = (): number => this.micros;

  /** The time as a date. */
  get date(): Date {
    return new Date(this.micros / 1000);
  }

  /**
   * Lets time pass.
   *
   * @param duration milliseconds or a duration such as `'10s'`, at most 1 year; anything else throws `RateLimitArgumentError`
   */
  advance(duration: Duration): void {
    this.micros += Math.round(toMs('duration', duration) * 1000);
  }

  /**
   * Moves to a time, forwards or backwards.
   *
   * @param date a date, or anything `new Date` reads; anything else throws `RateLimitArgumentError`
   */
  set(date: Date | number | string): void {
    this.micros = read('date', date);
  }
}

function read(name: string, date: Date | number | string): number {
  const ms = new Date(date).getTime();
  if (Number.isNaN(ms)) throw new RateLimitArgumentError(messages.wrongDate(name, date));
  return ms * 1000;
}

/** The options of `createTestingStore`. */
export interface TestingStoreOptions {
  /**
   * Its clock.
   * @default a new clock, which only moves when you move it
   */
  clock?: TestClock | undefined;
}

/**
 * Creates a store that counts in this process, on a clock that the test moves. Use it for `RateLimitTesting.useStore` or for the module's
 * option `store`.
 *
 * @param options its clock
 */
export function createTestingStore({ clock = new TestClock() }: TestingStoreOptions = {}): MemoryStore {
  return new MemoryStore({ clock: clock.now });
}
