import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { type Bucket, emptyBucket, noLimitCounts } from '../../lib/console/telemetry/bucket.js';
import { ConsoleClock, ConsoleRedis, ENDED } from '../../lib/console/telemetry/console-redis.js';
import { Folder, Recorder } from '../../lib/console/telemetry/recorder.js';
import { RESOLUTIONS } from '../../lib/console/telemetry/timeline.js';
import { WatchedLimits } from '../../lib/console/telemetry/watched-limits.js';
import { Overviews, RANGES } from '../../lib/console/views/overviews.js';
import type { Range } from '../../lib/console/api.js';
import { propertyRuns } from '../support/limits/property-runs.js';
import { connectRedis, freshPrefix } from '../support/limits/stores.js';

const TIMEOUT_MS = 5000;

/** A clock that a test sets, in which instances report and end. */
class SetClock extends ConsoleClock {
  at = Date.UTC(2030, 0, 1);
  override now(): number {
    return this.at;
  }
  override get isLearnt(): boolean {
    return true;
  }
  override learn(): void {
    // It is set.
  }
}

function bucketOf(allowed: number): Bucket {
  const bucket = emptyBucket();
  bucket.limits.set('api', { ...noLimitCounts(), allowed });
  bucket.checks.checks = allowed;
  bucket.latencies.set(3, allowed);
  return bucket;
}

/** Stores what an instance counted, as after a while without contact. */
async function flush(recorder: Recorder): Promise<void> {
  (recorder as unknown as { reporter: { storedAt: number } }).reporter.storedAt = -Infinity;
  await recorder.flush();
}

describe('the counts of ended instances', () => {
  let client: Redis;
  let clock: SetClock;
  let redis: ConsoleRedis;

  beforeAll(async () => {
    client = await connectRedis();
  });
  afterAll(() => client.quit());
  const restart = () => {
    clock = new SetClock();
    redis = new ConsoleRedis(client, freshPrefix(), TIMEOUT_MS);
  };
  beforeEach(restart);

  const instance = () => {
    const limits = new WatchedLimits(
      () => undefined,
      true,
      () => clock.now(),
    );
    const recorder = new Recorder(
      limits,
      clock,
      redis,
      () => 'closed',
      () => undefined,
      TIMEOUT_MS,
      () => '{}',
    );
    const overviews = new Overviews(recorder, clock, redis, undefined, () => ['api']);
    return { recorder, overviews, folder: new Folder(redis, clock, TIMEOUT_MS) };
  };
  const total = async ({ overviews }: ReturnType<typeof instance>, range: Range) =>
    (await overviews.overview(range)).totals['api']?.allowed ?? 0;
  const hashes = () => client.keys(redis.keys.seen.replace('seen', 'counts-*'));

  it('are in one sum of each range, once, whoever adds them and how often', async () => {
    const viewer = instance();
    for (let ended = 0; ended < 6; ended++) {
      const { recorder } = instance();
      recorder.timeline.add(clock.at - 2500, bucketOf(7));
      recorder.timeline.add(clock.at - 500, bucketOf(3));
      await recorder.leave();
    }
    clock.at += 40_000;
    const before = await Promise.all((Object.keys(RANGES) as Range[]).map((range) => total(viewer, range)));
    expect(before).toEqual([60, 60, 60, 60, 60]);
    const others = [instance(), instance(), viewer];
    for (let turn = 0; turn < 10; turn++) await Promise.all(others.map(({ folder }) => folder.turn('nobody')));
    const after = await Promise.all((Object.keys(RANGES) as Range[]).map((range) => total(viewer, range)));
    expect(after).toEqual(before);
    const left = await hashes();
    expect(left.every((key) => key.endsWith(`-${ENDED}`))).toBe(true);
    expect(left).toHaveLength(RESOLUTIONS.length);
    expect(await client.zcard(redis.keys.endings)).toBe(0);
    for (const key of left) expect(await client.ttl(key)).toBeGreaterThan(0);
    expect((await viewer.overviews.overview('7d')).coverage).toMatchObject({ ended: 0, unread: [] });
  });

  it('are seen by instances of the release before', async () => {
    const { recorder } = instance();
    recorder.timeline.add(clock.at - 500, bucketOf(3));
    await recorder.leave();
    clock.at += 40_000;
    await instance().folder.turn('nobody');
    // That release reads these hashes of all that reported within a day.
    const ids = await client.zrevrangebyscore(redis.keys.seen, '+inf', clock.at - 86_400_000);
    expect(ids).toEqual([ENDED]);
    expect(Object.values(await client.hgetall(redis.keys.counts(ENDED, 300_000)))).toEqual([
      '[[["api",3]],[3,0,0,0],[3,3]]',
    ]);
  });

  it('stay its own while an instance reports', async () => {
    const { recorder, folder } = instance();
    recorder.timeline.add(clock.at - 500, bucketOf(3));
    await recorder.flush();
    clock.at += 59_000;
    expect(await folder.turn('nobody')).toBe(0);
    clock.at += 600_000;
    await recorder.flush();
    expect(await folder.turn('nobody')).toBe(0);
    clock.at += 601_000;
    expect(await folder.turn('nobody')).toBe(1);
  });

  it('are counted once, however instances come, go, come back and add each other', async () => {
    const who = fc.nat(2);
    const action = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({ type: fc.constant('count' as const), who, allowed: fc.integer({ min: 1, max: 9 }) }),
      },
      { weight: 3, arbitrary: fc.record({ type: fc.constant('store' as const), who }) },
      { weight: 2, arbitrary: fc.record({ type: fc.constant('unanswered' as const), who }) },
      { weight: 2, arbitrary: fc.record({ type: fc.constant('wait' as const), seconds: fc.constantFrom(1, 20, 700) }) },
      { weight: 2, arbitrary: fc.record({ type: fc.constant('fold' as const), seconds: fc.constantFrom(0, 700) }) },
    );
    const actions = fc.array(action, { minLength: 12, maxLength: 30 });
    let folded = 0;
    await fc.assert(
      fc.asyncProperty(actions, async (some) => {
        restart();
        const all = [0, 1, 2].map(instance);
        let sum = 0;
        for (const one of some) {
          const recorder = 'who' in one ? all[one.who]!.recorder : undefined;
          if (one.type === 'count') {
            recorder!.timeline.add(clock.at - 500, bucketOf(one.allowed));
            sum += one.allowed;
          } else if (one.type === 'store') await flush(recorder!);
          else if (one.type === 'unanswered') {
            redis.run = async (commands) => {
              const replies = await ConsoleRedis.prototype.run.call(redis, commands);
              // Redis ran what stores counts, but its answer was lost.
              if (commands.some(([name]) => name === 'hset')) throw new Error('no answer');
              return replies;
            };
            await flush(recorder!);
            Reflect.deleteProperty(redis, 'run');
          } else {
            clock.at += one.seconds * 1000;
            if (one.type === 'wait') continue;
            const turns = await Promise.all(all.map(({ folder }) => folder.turn('nobody')));
            folded += turns.reduce((total, each) => total + each, 0);
          }
        }
        for (const { recorder } of all) await flush(recorder);
        for (const one of all) expect(await total(one, '30d')).toBe(sum);
      }),
      { numRuns: propertyRuns(60) },
    );
    expect(folded).toBeGreaterThan(0);
  });
});
