import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { type CheckEntry, CompiledLimit, type StoreDecision } from '../../lib/testing/store/index.js';
import { openDecision } from '../../lib/storage/stores/store-decision.js';
import {
  type Bucket,
  emptyBucket,
  LatencyHistogram,
  noLimitCounts,
  OTHERS,
  quantile,
  readBucket,
  writeBucket,
} from '../../lib/console/telemetry/bucket.js';
import { ConsoleClock } from '../../lib/console/telemetry/console-redis.js';
import { Tally } from '../../lib/console/telemetry/tally.js';
import { RESOLUTIONS, Timeline } from '../../lib/console/telemetry/timeline.js';
import { KeyCounts, namesOf } from '../../lib/console/telemetry/top-keys.js';
import { KeyBudget } from '../../lib/console/telemetry/space-saving.js';
import { WatchedLimits } from '../../lib/console/telemetry/watched-limits.js';
import { hashOf } from '../../lib/storage/telemetry/decision-event.js';

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
      api: { ...noLimitCounts(), allowed: 5, refused: 1, near: 1, candidateRefused: 1, candidateAsked: 2 },
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

  it('counts 2000 declared limits separately, however many others functions make', () => {
    const tally = new Tally(label, { isDeclared: (name) => name.startsWith('limit-') });
    for (let index = 0; index < 500; index++) tell(tally, [limitOf(`made-${index}`), {}]);
    for (let index = 0; index < 2000; index++) tell(tally, [limitOf(`limit-${index}`), {}]);
    const { limits, hides } = tally.take();
    expect(limits.size).toBe(2201);
    expect(limits.get(OTHERS)!.allowed).toBe(300);
    expect(hides).toBe(false);
    tell(tally, [limitOf('limit-one-more'), {}]);
    const next = tally.take();
    expect([next.hides, next.limits.get(OTHERS)!.allowed]).toEqual([true, 1]);
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

  it('are bounded in length, and say that they hide limits', () => {
    const bucket = emptyBucket();
    for (let index = 0; index < 5000; index++) {
      bucket.limits.set(`a limit with a long name ${index}`, { ...noLimitCounts(), allowed: index, refused: 1 });
    }
    const text = writeBucket(bucket);
    expect(text.length).toBeLessThanOrEqual(66_000);
    const { limits, hides } = readBucket(text)!;
    expect(hides).toBe(true);
    expect(limits.get('a limit with a long name 4999')).toMatchObject({ allowed: 4999, refused: 1 });
    const sum = (name: 'allowed' | 'refused') =>
      [...limits.values()].reduce((total, counts) => total + counts[name], 0);
    expect([sum('allowed'), sum('refused')]).toEqual([(5000 * 4999) / 2, 5000]);
  });

  it('of the release before may hide limits among others', () => {
    expect(readBucket('[[["(others)",3,0,0,0,0,0]],[3,0,0,0],[]]')!.hides).toBe(true);
    expect(readBucket('[[["(others)",3]],[3,0,0,0],[],0]')!.hides).toBe(false);
    expect(readBucket('[[["api",3,0,0,0,0,0]],[3,0,0,0],[]]')!.hides).toBe(false);
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
      // Reading all steps costs as much as thousands of additions.
      if (second % 100 < 2) expect([...timeline.since(1000, 0)]).toHaveLength(Math.min(second + 1, 300));
      expect(sent.old.length).toBeLessThanOrEqual(RESOLUTIONS.length);
    }
    expect(timeline.isStored).toBe(true);
  });

  it('holds what could not be stored, up to a bound, and stores the newest first', () => {
    const timeline = new Timeline();
    for (let second = 0; second < 100_005; second += 15) timeline.add(begin + second * 1000, bucketOf(1));
    const held = RESOLUTIONS.map(({ stepMs }) => [...timeline.since(stepMs, 0)].length);
    expect(held).toEqual([20, 240, 288, 28, 10]);
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
  afterEach(() => void jest.useRealTimers());

  it('goes by the answers that came fastest', () => {
    jest.useFakeTimers({ now: 1_000_000 });
    const clock = new ConsoleClock();
    expect(clock.now()).toBe(1_000_000);
    const now = performance.now();
    clock.learn(5_000_000, now - 10, now);
    expect(clock.now()).toBe(5_000_005);
    clock.learn(9_000_000, now - 500, now + 1);
    expect(clock.now()).toBe(5_000_005);
    clock.learn(9_000_000, now - 500, now + 60_000);
    expect(clock.now()).toBe(9_000_000 + 30_250 - 60_000);
  });
});

describe('top keys', () => {
  it('tell of identities of any length in bounded memory', () => {
    const counts = new KeyCounts(new KeyBudget(), 0);
    const long = 'x'.repeat(1_000_000);
    counts.add(long, 1);
    counts.add(long, 1);
    counts.add('\rodd', 1);
    const names = counts.summary(50).frequent.map(({ key }) => namesOf(key));
    expect(names).toEqual([{ id: hashOf(long) }, { id: hashOf('\rodd') }]);
    for (let index = 0; index < 100_000; index++) counts.add(`user:${index}`, 1);
    expect(counts.summary(50).frequent).toHaveLength(50);
  });

  it('forget after one to two periods', () => {
    let now = 0;
    const limits = new WatchedLimits(label, true, () => now);
    const api = limitOf('api');
    const refuse = (identity: string) =>
      limits.tally.decided([{ limit: api, identity, cost: 1 }], [{ ...openDecision(api), allowed: false }], UNTIMED);
    const keys = () => {
      const [, since, refused] = limits.of('api');
      return [since, Object.fromEntries(refused.map(([, count, , identity]) => [identity, count]))];
    };
    refuse('anna');
    now = 300_000;
    limits.turn();
    refuse('anna');
    refuse('bert');
    expect(keys()).toEqual([0, { anna: 2, bert: 1 }]);
    now = 600_000;
    limits.turn();
    expect(keys()).toEqual([300_000, { anna: 1, bert: 1 }]);
    now = 900_000;
    limits.turn();
    expect(keys()).toEqual([600_000, {}]);
  });

  it('count used units while somebody looks, and refusals always', () => {
    let now = 0;
    const limits = new WatchedLimits(label, true, () => now);
    const api = limitOf('api');
    const told = () => {
      const [, , refused, , used, , usedSince] = limits.of('api');
      return [refused.map(([, count]) => count), used.map(([, count]) => count), usedSince];
    };
    tell(limits.tally, [api, {}]);
    tell(limits.tally, [api, { allowed: false }]);
    expect(told()).toEqual([[1], [], null]);
    now = 10;
    limits.watch('api', 1000);
    tell(limits.tally, [api, {}]);
    tell(limits.tally, [api, {}]);
    expect(told()).toEqual([[1], [2], 10]);
    now = 999;
    limits.turn();
    expect(limits.isWatched).toBe(true);
    now = 1000;
    limits.turn();
    tell(limits.tally, [api, {}]);
    tell(limits.tally, [api, { allowed: false }]);
    expect(told()).toEqual([[2], [], null]);
  });

  it('are counted only while somebody looks, if it is to', () => {
    let now = 0;
    const limits = new WatchedLimits(label, false, () => now);
    const api = limitOf('api');
    tell(limits.tally, [api, { allowed: false }]);
    limits.watch('api', 1000);
    tell(limits.tally, [api, { allowed: false }]);
    expect(limits.published().map(([name, since, refused]) => [name, since, refused[0]![1]])).toEqual([['api', 0, 1]]);
    now = 1000;
    limits.turn();
    tell(limits.tally, [api, { allowed: false }]);
    expect(limits.published()).toEqual([]);
    expect(limits.of('api')[2]).toEqual([]);
  });

  it('are published of limits that refuse or are viewed, in a bounded number of bytes', () => {
    const limits = new WatchedLimits(
      label,
      true,
      () => 0,
      () => true,
    );
    for (let index = 0; index < 400; index++) {
      const limit = limitOf(`limit-${index}`);
      const refusals = index < 200 ? 5 : index;
      for (let call = 0; call < refusals; call++) {
        const identity = `${'long'.repeat(60)}-${call}`;
        limits.tally.decided([{ limit, identity, cost: 1 }], [{ ...openDecision(limit), allowed: false }], UNTIMED);
      }
    }
    limits.watch('limit-7', 1000);
    const published = limits.published();
    expect(published.map(([name]) => name)).toEqual(expect.arrayContaining(['limit-7', 'limit-399']));
    expect(published.some(([name]) => name === 'limit-8')).toBe(false);
    expect(published.length).toBeLessThanOrEqual(51);
    expect(JSON.stringify(published).length).toBeLessThanOrEqual(65_536 + published.length + 2);
  });

  it('are of a bounded number of limits that are viewed', () => {
    const watched = new WatchedLimits(label, false, () => 0);
    for (let index = 0; index < 200; index++) watched.watch(`limit-${index}`, 1000);
    watched.turn();
    expect(watched.published().length).toBeLessThanOrEqual(50);
  });
});
