import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Priority } from '../../../lib/index.js';
import { propertyRuns } from '../../support/limits/property-runs.js';
import { exponential, type Simulated, simulateQueue, summed } from '../../support/limits/queue-simulation.js';

/** Eight workers that take 20 ms each: 400 requests a second. */
const CAPACITY = 400;
const eight = { servers: () => 8, serviceMs: () => 20 } satisfies Partial<Simulated>;
const at = (load: number) => () => CAPACITY * load;
/** What was seen in the last seconds, once the limit has found its level. */
const last = (given: Simulated, count = 10) => summed(simulateQueue(given).slice(-count));

/** A fifth is critical and a half may be shed: the critical ones alone always fit. */
const ranked = (random: () => number): Priority => {
  const drawn = random();
  return drawn < 0.2 ? 'critical' : drawn < 0.5 ? 'default' : 'sheddable';
};

const slowForATime = (now: number) => (now > 15_000 && now < 30_000 ? 400 : 20);
const slowForGood = (now: number) => (now < 15_000 ? 20 : 100);
const withHealthChecks = (_: number, random: () => number) => (random() < 0.15 ? 0.5 : 20);
const oneInAHundred = (_: number, random: () => number) => random() < 0.01;
const ofImpatient = (latencyMs: number) => (latencyMs > 60 ? 'aborted' : 'completed');
const grown = (load: { eventLoopDelay: number; cpu: number }) =>
  last({ servers: () => 100, serviceMs: () => 20, durationMs: 10_000, rate: () => 1500, load }).largest;

describe('a server of eight workers', () => {
  it.each([2, 4])('answers nearly as much at %d times its capacity, and soon', (load) => {
    const { goodput, p99Ms, largest } = last({ ...eight, durationMs: 20_000, rate: at(load) });
    expect(goodput).toBeGreaterThan(0.93 * CAPACITY);
    expect(p99Ms).toBeLessThan(2 * 22);
    expect(largest).toBeLessThan(20);
  });

  it('answers all at half of its capacity', () => {
    const { shed, p99Ms } = last({ ...eight, durationMs: 20_000, rate: at(0.5) });
    expect({ shed, isSoon: p99Ms < 30 }).toEqual({ shed: 0, isSoon: true });
  });

  it('sheds the sheddable first and the critical last', () => {
    const { shedShare, goodput, p99Ms } = last({ ...eight, durationMs: 25_000, rate: at(2), priority: ranked }, 15);
    expect(shedShare.critical).toBeLessThan(0.02);
    expect(shedShare.default).toBeLessThan(0.4);
    expect(shedShare.sheddable).toBeGreaterThan(0.6);
    expect(goodput).toBeGreaterThan(0.9 * CAPACITY);
    expect(p99Ms).toBeLessThan(2 * 22);
  });

  it('works as much for sheddable requests alone', () => {
    const { goodput } = last({ ...eight, durationMs: 20_000, rate: at(2), priority: () => 'sheddable' });
    expect(goodput).toBeGreaterThan(0.9 * CAPACITY);
  });

  it('learns what critical requests alone need', () => {
    const options = { initial: 200, probeEvery: '5s' };
    const { goodput, largest } = last({
      ...eight,
      durationMs: 25_000,
      rate: at(2),
      priority: () => 'critical',
      options,
    });
    expect(goodput).toBeGreaterThan(0.9 * CAPACITY);
    expect(largest).toBeLessThan(25);
  });
});

describe('a limit', () => {
  it('does not run away under modest overload', () => {
    const { largest, p99Ms } = last({ ...eight, durationMs: 40_000, rate: at(1.25) }, 20);
    expect(largest).toBeLessThan(25);
    expect(p99Ms).toBeLessThan(60);
  });

  it('does not run away where load is low', () => {
    const { largest, mostInFlight } = summed(simulateQueue({ ...eight, durationMs: 40_000, rate: at(0.2) }));
    expect(largest).toBeLessThanOrEqual(Math.max(20, 2 * mostInFlight + 5));
  });

  it('falls to its least while every request ends by the same timeout, and recovers', () => {
    const seconds = simulateQueue({
      durationMs: 60_000,
      servers: (now) => (now < 30_000 ? 0 : 8),
      serviceMs: () => 20,
      rate: at(1.5),
      timeoutMs: 200,
    });
    expect(summed(seconds.slice(20, 30))).toMatchObject({ largest: 2, goodput: 0 });
    expect(summed(seconds.slice(45)).goodput).toBeGreaterThan(0.9 * CAPACITY);
  });

  it('recovers from a time in which the server was slow', () => {
    const afterwards = { servers: () => 8, serviceMs: slowForATime, rate: at(1.5) };
    expect(last({ ...afterwards, durationMs: 45_000 }).goodput).toBeGreaterThan(0.9 * CAPACITY);
    // Some probes later it knows how fast the server is now.
    expect(last({ ...afterwards, durationMs: 100_000 }).p99Ms).toBeLessThan(2 * 22);
  });

  it('finds its level where the server became slower for good', () => {
    const { goodput, p99Ms } = last(
      { servers: () => 8, serviceMs: slowForGood, durationMs: 60_000, rate: () => 160 },
      20,
    );
    expect(goodput).toBeGreaterThan(0.8 * 80);
    expect(p99Ms).toBeLessThan(250);
  });

  it('holds in a burst after an idle time', () => {
    const seconds = simulateQueue({ ...eight, durationMs: 80_000, rate: (now) => (now < 60_000 ? 0 : CAPACITY * 4) });
    expect(summed(seconds.slice(60, 65)).mostInFlight).toBeLessThanOrEqual(25);
    expect(summed(seconds.slice(65)).goodput).toBeGreaterThan(0.9 * CAPACITY);
  });

  it('is not misled by a night of health checks', () => {
    const { goodput } = last({
      servers: () => 8,
      serviceMs: (now) => (now < 60_000 ? 0.5 : 20),
      durationMs: 80_000,
      rate: (now) => (now < 60_000 ? 2 : CAPACITY * 2),
    });
    expect(goodput).toBeGreaterThan(0.9 * CAPACITY);
  });

  it('is not misled by some health checks among requests', () => {
    const { goodput, p99Ms } = last({
      servers: () => 8,
      serviceMs: withHealthChecks,
      durationMs: 30_000,
      rate: at(2.4),
    });
    expect(goodput).toBeGreaterThan(0.9 * (CAPACITY / 0.85));
    expect(p99Ms).toBeLessThan(60);
  });

  it('forgets requests that never end, and streams, after its ttl', () => {
    const { goodput } = last({
      ...eight,
      durationMs: 30_000,
      rate: at(1.5),
      isLost: oneInAHundred,
      options: { ttl: '2s' },
    });
    expect(goodput).toBeGreaterThan(0.85 * CAPACITY);
  });

  it('is not misled by requests that take less than its clock can tell', () => {
    const { goodput } = last(
      {
        servers: () => 2,
        serviceMs: exponential(0.4),
        durationMs: 10_000,
        rate: () => 7500,
        options: { probeEvery: '2s' },
      },
      5,
    );
    expect(goodput).toBeGreaterThan(0.9 * 5000);
  });

  it('learns from clients that do not wait so long', () => {
    const { largest } = last({
      ...eight,
      durationMs: 20_000,
      rate: at(2),
      end: ofImpatient,
      options: { initial: 200 },
    });
    expect(largest).toBeLessThan(40);
  });

  it('does not grow while the event loop or the processors are too busy', () => {
    const [idle, late, busy] = [
      grown({ eventLoopDelay: 0, cpu: 0 }),
      grown({ eventLoopDelay: 0, cpu: 0.95 }),
      grown({ eventLoopDelay: 4000, cpu: 0.89 }),
    ];
    expect([idle > 2 * late, busy]).toEqual([true, idle]);
  });

  interface Server {
    workers: number;
    serviceMs: number;
    /** Whether it works for exponential times. */
    isRandom: boolean;
    /** Requests that come, as a share of what it can answer. */
    load: number;
    seed: number;
    min: number;
    max: number;
  }

  const anyServer: fc.Arbitrary<Server> = fc.record({
    workers: fc.constantFrom(1, 2, 4, 8),
    serviceMs: fc.constantFrom(10, 20, 80),
    isRandom: fc.boolean(),
    load: fc.constantFrom(0.3, 0.8, 1.5, 2),
    seed: fc.integer({ min: 1, max: 1e6 }),
    min: fc.integer({ min: 1, max: 4 }),
    max: fc.integer({ min: 40, max: 80 }),
  });

  /** What is seen in the second half of a time. A window of a few requests says little: time goes by the requests. */
  const secondHalf = ({ workers, serviceMs, isRandom, load, seed, min, max }: Server) => {
    const capacity = (workers * 1000) / serviceMs;
    const seconds = simulateQueue({
      servers: () => workers,
      serviceMs: isRandom ? exponential(serviceMs) : () => serviceMs,
      rate: () => capacity * load,
      durationMs: 1000 * Math.min(40, Math.max(10, Math.round(4000 / capacity))),
      seed,
      options: { min, max },
    });
    const seen = summed(seconds.slice(Math.floor(seconds.length / 2)));
    return { ...seen, share: seen.goodput / (capacity * Math.min(1, load)) };
  };

  it('stays between min and max', () =>
    fc.assert(
      fc.property(anyServer, (server) => {
        const { largest, smallest, mostInFlight } = secondHalf(server);
        const { min, max } = server;
        expect([largest <= max, smallest >= min, mostInFlight <= max]).toEqual([true, true, true]);
      }),
      { numRuns: propertyRuns(6) },
    ));

  it.each([1, 2, 4, 8])('answers what a server of %d workers can do', (workers) => {
    const loads = [0.3, 0.8, 1.5, 2];
    const seeds = [1, 2, 3, 4];
    const shares = [true, false].flatMap((isRandom) =>
      [10, 20, 80].flatMap((serviceMs) =>
        loads.flatMap((load) =>
          seeds.map(
            (seed) => secondHalf({ workers, serviceMs, isRandom, load, seed, min: seed, max: 30 + 10 * seed }).share,
          ),
        ),
      ),
    );
    // One worker whose queue holds one request is idle now and then.
    expect(Math.min(...shares)).toBeGreaterThan(workers === 1 ? 0.5 : 0.7);
    expect(shares.reduce((sum, share) => sum + share, 0) / shares.length).toBeGreaterThan(workers === 1 ? 0.8 : 0.85);
  });

  it.each([
    { workers: 4, seed: 704_936, min: 2, max: 49 },
    { workers: 8, seed: 16_107, min: 3, max: 66 },
  ])('does not fall for a few requests that were fast by chance, with $workers workers', (server) => {
    expect(secondHalf({ ...server, serviceMs: 20, isRandom: true, load: 2 }).share).toBeGreaterThan(0.8);
  });
});
