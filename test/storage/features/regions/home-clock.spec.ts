import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { HomeClock } from '../../../../lib/storage/features/regions/home-clock.js';

const PATIENCE_MS = 250;
const SECOND = 1_000_000;
/** What the home says first, in microseconds. */
const SAID = 1_700_000_000 * SECOND;

describe('what a region knows of the time of its home', () => {
  let clock: HomeClock;
  let monotonicMs: number;
  let dateMs: number;

  /** Lets time pass, by both clocks of the process. */
  const pass = (ms: number) => {
    monotonicMs += ms;
    dateMs += ms;
  };

  beforeEach(() => {
    monotonicMs = 5000;
    dateMs = 1_600_000_000_000;
    jest.spyOn(performance, 'now').mockImplementation(() => monotonicMs);
    jest.spyOn(Date, 'now').mockImplementation(() => dateMs);
    clock = new HomeClock(PATIENCE_MS);
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  /** An answer that took some time on its way. */
  const hear = (said: number, tookMs: number) => {
    const askedAt = monotonicMs;
    pass(tookMs);
    clock.set(said, askedAt);
  };

  it('is nothing before the home has answered', () => {
    expect(clock.latest()).toBe(0);
    expect(clock.now()).toBe(0);
    expect(clock.ageMs).toBe(Infinity);
  });

  it('is at least what the home said, and all that may have passed since the question', () => {
    hear(SAID, 80);
    pass(1000);
    // The home may have answered at once, and the call that is made now may take its time.
    const bound = SAID + (80 + 1000 + PATIENCE_MS) * 1000;
    expect(clock.latest()).toBeGreaterThanOrEqual(bound);
    expect(clock.latest()).toBeLessThan(bound + 0.001 * 1080 * 1000 + 2);
    expect(clock.now()).toBe(SAID + SECOND);
  });

  it('goes on while the machine sleeps, which stops one of the clocks', () => {
    hear(SAID, 10);
    dateMs += 60_000;
    expect(clock.latest()).toBeGreaterThanOrEqual(SAID + 60 * SECOND);
  });

  it('goes on if somebody sets back the clock of the machine', () => {
    hear(SAID, 10);
    pass(60_000);
    dateMs -= 3_600_000;
    expect(clock.latest()).toBeGreaterThanOrEqual(SAID + 60 * SECOND);
  });

  it('follows a home whose clock was set back or forward', () => {
    hear(SAID, 10);
    pass(1000);
    hear(SAID - 3600 * SECOND, 10);
    expect(clock.latest()).toBeLessThan(SAID - 3599 * SECOND);
    hear(SAID + 3600 * SECOND, 10);
    expect(clock.latest()).toBeGreaterThan(SAID + 3600 * SECOND);
  });

  it('ignores an answer that a later one has overtaken', () => {
    const first = monotonicMs;
    pass(5);
    const second = monotonicMs;
    pass(20);
    clock.set(SAID + 5000, second);
    const known = clock.latest();
    clock.set(SAID - SECOND, first);
    expect(clock.latest()).toBe(known);
  });
});
