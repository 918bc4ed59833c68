import { describe, expect, it } from '@jest/globals';
import { type CheckEntry, CompiledLimit, type StoreDecision } from '../../lib/store/index.js';
import { openDecision } from '../../lib/stores/store-decision.js';
import {
  type Bucket,
  emptyBucket,
  noLimitCounts,
  readBucket,
  writeBucket,
} from '../../lib/console/telemetry/bucket.js';
import { ConsoleClock } from '../../lib/console/telemetry/console-clock.js';
import { LatencyHistogram, quantile } from '../../lib/console/telemetry/latency-histogram.js';
import { OTHERS, Tally } from '../../lib/console/telemetry/tally.js';
import { RESOLUTIONS, Timeline } from '../../lib/console/telemetry/timeline.js';
import { namesOf, TopKeyCounts } from '../../lib/console/telemetry/top-keys.js';
import { WatchedLimits } from '../../lib/console/telemetry/watched-limits.js';
import { hashOf } from '../../lib/telemetry/decision-event.js';

const limitOf = (name: string, settings: object = {}) =>
  new CompiledLimit({ algo: 'gcra', rate: 10, interval: '1m' }, { location: 'test', name, ...settings });
const label = ({ name }: CompiledLimit) => name;
const UNTIMED = -1;

/** Tells a tally of one check. */
function tell(tally: Tally, ...said: [CompiledLimit, Partial<StoreDecision>][]): void {
  const entries: CheckEntry[] = said.map(([limit]) => ({ limit, identity: 'anna', cost: 1 }));
  const decisions = said.map(([limit, decision]) => ({ ...openDecision(limit), ...decision }));
  tally.decided(entries, decisions, UNTIMED);
}

function bucketOf(allowed: number): Bucket {
  const bucket = emptyBucket();
  bucket.limits.set('api', { ...noLimitCounts(), allowed });
  return bucket;
}

describe('the tally', () => {
  const api = limitOf('api');
  const shadow = limitOf('shadow', { shadow: true });
  const candidate = limitOf('api', { shadow: true, isCandidate: true });

  it('tells outcomes, sources and candidates apart', () => {
    const tally = new Tally(label);
    tell(tally, [api, { remaining: 9 }]);
    tell(tally, [api, { remaining: 2 }]);
    tell(tally, [api, { remaining: 9 }], [shadow, { allowed: false }], [candidate, {}]);
    tell(tally, [api, { allowed: false, source: 'cache' }]);
    tell(tally, [api, { source: 'fallback' }], [candidate, { allowed: false, source: 'fallback' }]);
    tell(tally, [api, { source: 'prefetch' }]);
    tally.failed();
    const { limits, checks } = tally.take();
    expect(Object.fromEntries(limits)).toEqual({
      api: { allowed: 5, refused: 1, shadowRefused: 0, near: 1, candidateRefused: 1, candidateAsked: 2 },
      shadow: { ...noLimitCounts(), shadowRefused: 1 },
    });
    expect(checks).toEqual({ checks: 7, fallback: 2, cache: 1, prefetch: 1 });
    expect(tally.take()).toEqual(emptyBucket());
  });

  it('does not count limits that a list kept from being asked', () => {
    const tally = new Tally(label);
    tell(tally, [api, { allowed: false, source: 'list' }], [limitOf('other'), { source: 'list' }]);
    expect([...tally.take().limits.keys()]).toEqual(['api']);
  });

  it('leaves limits out that are not shown', () => {
    const tally = new Tally(() => undefined);
    tell(tally, [api, {}]);
    expect(tally.take()).toEqual(emptyBucket());
  });

  it('counts all labels beyond a number together', () => {
    const tally = new Tally(label);
    for (let index = 0; index < 5000; index++) tell(tally, [limitOf(`limit-${index}`), {}]);
    const { limits } = tally.take();
    expect(limits.size).toBe(201);
    expect(limits.get(OTHERS)!.allowed).toBe(4800);
  });

  it('times a part of the checks', () => {
    const tally = new Tally(label);
    expect(Array.from({ length: 6400 }, () => tally.times()).filter(Boolean)).toHaveLength(100);
  });
});

describe('latencies', () => {
  it('are told within 5 %', () => {
    const histogram = new LatencyHistogram();
    for (let ms = 1; ms <= 1000; ms++) histogram.add(ms);
    const classes = histogram.take();
    expect(Math.abs(quantile(classes, 0.5)! / 500 - 1)).toBeLessThan(0.05);
    expect(Math.abs(quantile(classes, 0.99)! / 990 - 1)).toBeLessThan(0.05);
    expect(quantile(histogram.take(), 0.5)).toBeNull();
  });

  it('of any length have a class', () => {
    const histogram = new LatencyHistogram();
    for (const ms of [0, 1e-9, 1e9, Infinity]) histogram.add(ms);
    expect([...histogram.take().values()].reduce((sum, count) => sum + count, 0)).toBe(4);
  });
});

describe('buckets', () => {
  it('are read as they were written', () => {
    const bucket = bucketOf(3);
    bucket.limits.set('__proto__', { ...noLimitCounts(), refused: 2 });
    bucket.latencies.set(40, 7);
    expect(readBucket(writeBucket(bucket))).toEqual(bucket);
  });

  it.each(['', '{}', '[]', 'null', '[1,2,3]', '[[["a"]],[],[]]', '[[["a",-1,"x"]],[1e99],[null]]'])(
    'of another release are nothing, or zeros: %p',
    (text) => {
      const counts = [...(readBucket(text)?.limits.values() ?? [])].flatMap((each) => Object.values(each));
      expect(counts.every((count) => count === 0)).toBe(true);
    },
  );
});

describe('the timeline', () => {
  const begin = Date.UTC(2030, 0, 1);

  it('adds up to the same in all resolutions', () => {
    const timeline = new Timeline();
    for (let second = 0; second < 250; second++) timeline.add(begin + second * 1000, bucketOf(second));
    for (const { stepMs } of RESOLUTIONS) {
      const counts = [...timeline.since(stepMs, 0)].map(([, { limits }]) => limits.get('api')!.allowed);
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe((250 * 249) / 2);
    }
  });

  it('keeps a bounded number of steps, and names those that are stored and not kept any more', () => {
    const timeline = new Timeline();
    for (let second = 0; second < 3000; second++) {
      timeline.add(begin + second * 1000, bucketOf(1));
      const sent = timeline.unsent(200);
      timeline.stored(sent);
      const seconds = [...timeline.since(1000, 0)].length;
      expect(seconds).toBe(Math.min(second + 1, 300));
      expect(sent.old.length).toBeLessThanOrEqual(3);
    }
    expect(timeline.isStored).toBe(true);
  });

  it('holds what could not be stored, up to a bound, and stores the newest first', () => {
    const timeline = new Timeline();
    for (let second = 0; second < 100_005; second += 15) timeline.add(begin + second * 1000, bucketOf(1));
    const held = RESOLUTIONS.map(({ stepMs }) => [...timeline.since(stepMs, 0)].length);
    expect(held).toEqual([20, 240, 288]);
    const { steps, old } = timeline.unsent(10);
    expect(old).toEqual([]);
    expect(steps.map(({ step }) => step - begin)).toEqual(
      Array.from({ length: 10 }, (_, index) => 99_990_000 - index * 15_000),
    );
  });

  it('stores a step again that grew while it was sent', () => {
    const timeline = new Timeline();
    timeline.add(begin, bucketOf(1));
    const sent = timeline.unsent(10);
    timeline.add(begin, bucketOf(1));
    timeline.stored(sent);
    expect(timeline.isStored).toBe(false);
    timeline.stored(timeline.unsent(10));
    expect(timeline.isStored).toBe(true);
  });

  it('goes on where the clock steps back', () => {
    const timeline = new Timeline();
    timeline.add(begin, bucketOf(1));
    timeline.add(begin + 1000, bucketOf(2));
    timeline.add(begin, bucketOf(4));
    expect([...timeline.since(1000, 0)].map(([step, { limits }]) => [step, limits.get('api')!.allowed])).toEqual([
      [begin, 5],
      [begin + 1000, 2],
    ]);
  });
});

describe('the clock', () => {
  it('goes by the answers that came fastest', () => {
    const clock = new ConsoleClock();
    expect(Math.abs(clock.now() - Date.now())).toBeLessThan(1000);
    const now = performance.now();
    clock.learn(5_000_000, now - 10, now);
    expect(Math.abs(clock.now() - 5_000_005)).toBeLessThan(1000);
    clock.learn(9_000_000, now - 500, now + 1);
    expect(clock.now()).toBeLessThan(6_000_000);
    clock.learn(9_000_000, now - 500, now + 60_000);
    expect(clock.now()).toBeGreaterThan(8_000_000);
  });
});

describe('top keys', () => {
  it('tell of identities of any length in bounded memory', () => {
    const counts = new TopKeyCounts(0);
    const long = 'x'.repeat(1_000_000);
    counts.seen(long, 0);
    counts.seen(long, 0);
    counts.seen('\rodd', 0);
    const names = counts.published().refused.frequent.map(({ key }) => namesOf(key));
    expect(names).toEqual([{ id: hashOf(long) }, { id: hashOf('\rodd') }]);
    for (let index = 0; index < 100_000; index++) counts.seen(`user:${index}`, 1);
    expect(counts.published().used.frequent).toHaveLength(50);
  });

  it('forget after one to two periods', () => {
    const counts = new TopKeyCounts(0);
    const keys = () => counts.published().refused.frequent.map(({ key, count }) => [key, count]);
    counts.seen('anna', 0);
    counts.turn(300_000);
    counts.seen('anna', 0);
    counts.seen('bert', 0);
    expect(keys()).toEqual([
      ['anna', 2],
      ['bert', 1],
    ]);
    counts.turn(600_000);
    expect(keys()).toEqual(
      expect.arrayContaining([
        ['anna', 1],
        ['bert', 1],
      ]),
    );
    counts.turn(900_000);
    expect(keys()).toEqual([]);
  });

  it('are counted while somebody looks', () => {
    let now = 0;
    const limits = new WatchedLimits(label, false, () => now);
    const api = limitOf('api');
    const told = () => limits.published().map(([name, , , , used]) => [name, used.map(([, count]) => count)]);
    tell(limits.tally, [api, {}]);
    limits.watch('api', 1000);
    tell(limits.tally, [api, {}]);
    tell(limits.tally, [api, {}]);
    expect(told()).toEqual([['api', [2]]]);
    now = 999;
    limits.turn();
    expect(limits.isCounting).toBe(true);
    now = 1000;
    limits.turn();
    tell(limits.tally, [api, {}]);
    expect(told()).toEqual([]);
  });

  it('are of a bounded number of limits', () => {
    const limits = new WatchedLimits(label, true, () => 0);
    for (let index = 0; index < 200; index++) tell(limits.tally, [limitOf(`limit-${index}`), {}]);
    expect(limits.published()).toHaveLength(50);
    const watched = new WatchedLimits(label, false, () => 0);
    for (let index = 0; index < 200; index++) watched.watch(`limit-${index}`, 1000);
    watched.turn();
    expect(watched.published().length).toBeLessThanOrEqual(50);
  });
});
