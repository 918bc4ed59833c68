import { describe, expect, it } from '@jest/globals';
import { type ArrivalParameters, type ArrivalState, openArrival } from '../../../lib/engine/algorithms/arrival-time.js';
import { gcra } from '../../../lib/engine/algorithms/gcra.js';
import type { Scale } from '../../../lib/engine/algorithms/scale.js';
import { tokenBucket } from '../../../lib/engine/algorithms/token-bucket.js';

const START = 1_790_000_123_456_789;

/** A unit weighs 2,000,000, of which one flows in a microsecond. */
const parameters = gcra.compile({ algo: 'gcra', rate: 5, interval: '10s', burst: 10 }, 'test');
const UNIT = 2_000_000;

function charged(by: ArrivalParameters, units: number, now = START): ArrivalState {
  const state = gcra.open(by, undefined, now);
  gcra.take(by, state, units);
  return state;
}

function opened(by: ArrivalParameters, stored: ArrivalState, now: number): ArrivalState {
  const state = gcra.open(by, undefined, now);
  openArrival(by, stored, now, state);
  return state;
}

describe('what is owed', () => {
  it('can be lent up to the largest whole number', () => {
    // A unit weighs 1.
    const light = gcra.compile({ algo: 'gcra', rate: 10_000, interval: 10 }, 'test');
    const most = Number.MAX_SAFE_INTEGER;
    expect(gcra.reservation!.canOwe(light, charged(light, 0), most)).toBe(true);
    expect(gcra.reservation!.canOwe(light, charged(light, 1), most - 1)).toBe(true);
    expect(gcra.reservation!.canOwe(light, charged(light, 1), most)).toBe(false);
    expect(gcra.reservation!.canOwe(parameters, charged(parameters, 0), Math.floor(most / UNIT))).toBe(true);
    expect(gcra.reservation!.canOwe(parameters, charged(parameters, 0), Math.floor(most / UNIT) + 1)).toBe(false);
  });

  it('is the same under another quota, which has another capacity', () => {
    const other = gcra.withQuota!(parameters, 20);
    expect(other).toMatchObject({ quota: 20, capacity: 20 * UNIT, scale: parameters.scale });
    expect(gcra.remaining(other, opened(other, charged(parameters, 4), START))).toBe(16);
  });

  it('is given back but for what has flowed of it, on a clock that begins at zero, too', () => {
    const state = charged(parameters, 12, 0);
    gcra.give(parameters, state, 2, undefined, 0);
    expect(gcra.remaining(parameters, state)).toBe(-2);
    gcra.give(parameters, state, 2);
    expect(gcra.remaining(parameters, state)).toBe(0);
  });
});

describe('what flows all at once', () => {
  const intervally = tokenBucket.compile(
    { algo: 'token-bucket', rate: 5, interval: '10s', burst: 10, refill: 'intervally' },
    'test',
  );
  const { interval } = intervally.scale;

  it('begins a new interval with the request that finds nothing owed', () => {
    const state = opened(intervally, charged(intervally, 1), START + interval + 7);
    expect(state).toMatchObject({ debt: 0, time: START + interval + 7 });
  });

  it('goes on with its intervals while something is owed', () => {
    const state = opened(intervally, charged(intervally, 8), START + interval + 7);
    expect(state).toMatchObject({ debt: 3 * intervally.scale.unit, time: START + interval });
  });
});

const flowsAtOnce = (options: { rate: number; interval: string; burst: number }) =>
  tokenBucket.compile({ algo: 'token-bucket', ...options, refill: 'intervally' }, 'test');
const scaled = (debt: number, { unit }: Scale, old: Scale) => Math.ceil((debt / old.unit) * unit);

describe('what is owed under another rate', () => {
  const year = { interval: '1y', rate: 1009 } as const;
  const coarse = gcra.compile({ algo: 'gcra', ...year, burst: 200 }, 'test');

  it('is counted from now on in the ticks of that rate', () => {
    const now = START + 5_000_000;
    const finer = opened(parameters, charged(coarse, 100), now);
    const left = 100 * coarse.scale.unit - 5000 * coarse.scale.speed;
    expect(finer).toMatchObject({ debt: scaled(left, parameters.scale, coarse.scale), time: now, migrated: true });
    const coarser = opened(coarse, charged(parameters, 10), now);
    expect(coarser).toMatchObject({
      debt: scaled(10 * UNIT - 5_000_000, coarse.scale, parameters.scale),
      time: Math.ceil(now / 1000),
      migrated: true,
    });
  });

  it('is another one in ticks of another length, whatever the numbers', () => {
    const { unit, speed } = coarse.scale;
    const alike = gcra.compile({ algo: 'gcra', rate: speed, interval: unit / 1000, burst: 200 }, 'test');
    expect(alike.scale).toEqual({ ...coarse.scale, tick: 1 });
    expect(opened(alike, charged(coarse, 100), START)).toMatchObject({ migrated: true, time: START });
  });

  it('is counted from the time of the last charge while the clock catches up', () => {
    const now = START - 1_000_000;
    expect(opened(parameters, charged(coarse, 100), now).time).toBe(Math.floor(START / 1000) * 1000);
    expect(opened(coarse, charged(parameters, 10), now).time).toBe(Math.ceil(START / 1000));
  });

  it('is nothing if all has flowed', () => {
    const now = START + 10 * UNIT;
    expect(opened(coarse, charged(parameters, 10), now)).toMatchObject({ debt: 0 });
    expect(opened(coarse, charged(parameters, 10), now - 1).debt).toBeGreaterThan(0);
  });

  it('goes on with the interval that has begun where both flow all at once', () => {
    const long = flowsAtOnce({ rate: 1009, interval: '1y', burst: 200 });
    const short = flowsAtOnce({ rate: 5, interval: '10s', burst: 10 });
    const now = START + 13_000_000;
    // The second interval of ten seconds began with it.
    expect(opened(long, charged(short, 8), now).time).toBe(Math.ceil((START + 10_000_000) / 1000));
    // So many short ones are over since the long one began, but nothing of that has flowed.
    const began = Math.floor(START / 1000) * 1000;
    expect(opened(short, charged(long, 100), now)).toMatchObject({
      debt: 100 * short.scale.unit,
      time: began + 10_000_000,
    });
  });
});

const bucket = (burst: number) =>
  tokenBucket.compile({ algo: 'token-bucket', rate: 5, interval: '10s', burst }, 'test');
const charge = (units: number) => {
  const state = tokenBucket.open(bucket(10), undefined, START);
  tokenBucket.take(bucket(10), state, units);
  return state;
};
const remainingAfter = (seconds: number, units: number) =>
  tokenBucket.remaining(bucket(20), tokenBucket.open(bucket(20), charge(units), START + seconds * 1_000_000));

describe('a token bucket that grows', () => {
  it('is full if it was full, and else has to fill', () => {
    expect([remainingAfter(2, 1), remainingAfter(0, 1), remainingAfter(4, 3)]).toEqual([20, 9, 9]);
  });
});

describe('a counter of which nothing is owed', () => {
  it('is reset now, also while the clock catches up', () => {
    const fresh = charged(parameters, 0);
    for (const now of [START, START - 1_000_000]) {
      expect(gcra.resetAfter(parameters, opened(parameters, fresh, now))).toBe(0);
    }
  });
});
