import { describe, expect, it } from '@jest/globals';
import { gcra } from '../../../lib/engine/algorithms/gcra.js';
import { leakyBucket, type LeakyBucketState } from '../../../lib/engine/algorithms/leaky-bucket.js';
import { tokenBucket } from '../../../lib/engine/algorithms/token-bucket.js';

const coarse = { rate: 1009, interval: '1y' } as const;
/** An interval in milliseconds: by so many, times 1009, a unit weighs more than what flows in a tick. */
const YEAR = 31_557_600_000;
/** In the middle of a tick. */
const NOW = 1_790_000_123_456_789;
const TICK = Math.floor(NOW / 1000);

const cases = [
  ['gcra', gcra, gcra.compile({ algo: 'gcra', ...coarse, burst: 200 }, 'test')],
  ['token-bucket', tokenBucket, tokenBucket.compile({ algo: 'token-bucket', ...coarse, burst: 200 }, 'test')],
  ['leaky-bucket', leakyBucket, leakyBucket.compile({ algo: 'leaky-bucket', ...coarse, queue: 199 }, 'test')],
] as const;

type Case = (typeof cases)[number];

/** A state that was charged at `NOW`. */
function charged([, algorithm, parameters]: Case, units: number) {
  const state = algorithm.open(parameters, undefined, NOW);
  algorithm.take(parameters, state as never, units);
  return algorithm.save(parameters, state as never);
}

/** The ticks in which so many units flow. */
const ticksOf = (units: number) => Math.ceil((units * YEAR) / 1009);

/** The state of units that were charged at `NOW`, as it is then. */
function openedAt(now: number, each: Case, units: number) {
  const [, algorithm, parameters] = each;
  return algorithm.open(parameters, charged(each, units) as never, now);
}

function remainingAt(now: number, each: Case): number {
  const [, algorithm, parameters] = each;
  return algorithm.remaining(parameters, openedAt(now, each, 200) as never);
}

describe.each(cases)('a rate that is counted in milliseconds: %s', (...each) => {
  const [, algorithm, parameters] = each;

  it('has ticks of a millisecond', () => {
    expect(parameters.scale).toMatchObject({ tick: 1000, interval: YEAR, unit: YEAR, speed: 1009 });
    expect(algorithm.window(parameters, NOW)).toBe(YEAR * 1000);
  });

  it('waits from the beginning of the tick that it is charged in', () => {
    const later = NOW + 5_000_000;
    const state = openedAt(later, each, 200) as never;
    expect(algorithm.retryAfter(parameters, state, 3)).toBe((TICK + ticksOf(3)) * 1000 - later);
    expect(algorithm.resetAfter(parameters, state)).toBe((TICK + ticksOf(200)) * 1000 - later);
  });

  it('lets go of a unit at the end of its last tick', () => {
    const end = (TICK + ticksOf(1)) * 1000;
    expect([end - 1, end, end + ticksOf(1) * 1000].map((now) => remainingAt(now, each))).toEqual([0, 1, 2]);
  });

  it('begins a debt anew on a clock that was set back by an interval, and no less', () => {
    expect(openedAt(NOW - (YEAR - 1) * 1000, each, 200)).toMatchObject({
      migrated: false,
      time: TICK,
      debt: 200 * YEAR,
    });
    expect(openedAt(NOW - YEAR * 1000, each, 200)).toMatchObject({
      migrated: true,
      time: TICK - YEAR,
      debt: 200 * YEAR,
    });
  });
});

describe('units of a rate that is counted in milliseconds', () => {
  it.each(cases.slice(0, 2).map((each) => [each[0], each] as const))('%s: are reserved to a tick', (_, each) => {
    const [, { reservation }, parameters] = each;
    expect(reservation!.debtClearedAt(parameters, charged(each, 203) as never)).toBe(TICK + ticksOf(3));
  });

  it.each(cases.slice(0, 2).map((each) => [each[0], each] as const))(
    '%s: come back but for what has flowed since',
    (_, each) => {
      const [, algorithm, parameters] = each;
      const after = (units: number, chargedAt: number) => {
        const state = openedAt(NOW + 1000, each, 210) as never;
        algorithm.give(parameters, state, units, undefined, chargedAt);
        return algorithm.remaining(parameters, state);
      };
      // Ten units more than the quota are owed, and were to be waited for: so many have flowed off by then.
      expect(after(210, NOW)).toBe(190);
      expect(after(210, NOW + ticksOf(10) * 1000)).toBe(200);
    },
  );

  it('leaky-bucket: are held until the tick in which they leave', () => {
    const [, , leaky] = cases;
    const later = NOW + 5_000_000;
    const state = openedAt(later, leaky, 3) as LeakyBucketState;
    expect(leakyBucket.queue!.delay(leaky[2], state, 2)).toBe((TICK + ticksOf(4)) * 1000 - later);
    expect(leakyBucket.queue!.spacing(leaky[2])).toBeCloseTo((YEAR / 1009) * 1000, 3);
    // While the clock catches up, from the tick of the last one on.
    const earlier = openedAt(NOW - 5_000_000, leaky, 3) as LeakyBucketState;
    expect(leakyBucket.queue!.delay(leaky[2], earlier, 2)).toBe(ticksOf(4) * 1000);
  });

  it('leaky-bucket: come back with the time at which they were charged', () => {
    const [, , leaky] = cases;
    const given = (chargedAt: number) => {
      const state = openedAt(NOW + 1000, leaky, 3) as LeakyBucketState;
      leakyBucket.give(leaky[2], state, 1, TICK + ticksOf(2), chargedAt);
      return leakyBucket.remaining(leaky[2], state);
    };
    expect([NOW, NOW + 2_000_000].map(given)).toEqual([198, 197]);
  });

  it.each(cases.map((each) => [each[0], each] as const))('%s: are there at a tick of another rate', (_, each) => {
    const [, { reservation, queue }, parameters] = each;
    const { ticketUnder } = (reservation ?? queue) as { ticketUnder: NonNullable<typeof queue>['ticketUnder'] };
    const half = { ...parameters, scale: { ...parameters.scale, speed: 2018 } };
    const expected = TICK + Math.ceil((4000 * 2018) / 1009);
    expect(ticketUnder(half as never, parameters as never, TICK + 4000, NOW, 1)).toEqual({
      ticket: expected,
      time: expected * 1000,
    });
  });
});
