import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { RedisStore, type Store } from '../../../lib/index.js';
import type { Lesson, RateLesson } from '../../../lib/testing/store/index.js';
import { read } from '../../../lua/compose.mjs';
import { withOwnRedis } from '../../support/redis/own-redis.js';
import { ask, compile, ManualClock } from '../../support/limits/stores.js';
import { scripts } from '../../support/redis/scripts.js';

const MINUTE = 60_000;
const limit = compile({ algo: 'gcra', rate: 60, interval: MINUTE, burst: 100 }, 'learned');
const counter = { limit, identity: 'ip:203.0.113.7' };

const lesson = (told: Partial<Lesson> = {}, rate?: Partial<RateLesson>): Lesson => ({
  ageMs: 0,
  inFlight: 0,
  instance: 1,
  ...told,
  rate: rate && { accepted: 0, refused: false, largest: 1, slowestMs: MINUTE, ...rate },
});

/** The scripts of instances that do not know yet how rates are learnt, or how anything is. */
const before = scripts.decisions.replace(read('driver/learn-rate.lua'), '');
const first = before.replace(read('driver/learn.lua'), '');

describe('what is learnt, on Redis', () => {
  let redis: Redis;
  let clock: ManualClock;
  let store: Store;
  withOwnRedis((client) => (redis = client));

  const storeWith = (script?: string) =>
    new RedisStore(redis, { clock, prefix: 'learning', timeoutMs: 10_000, ...(script !== undefined && { script }) });
  beforeEach(async () => {
    await redis.flushall();
    clock = new ManualClock();
    store = storeWith();
  });

  const left = async (of = store) => (await ask(of, limit, { peek: true })).remaining;

  it('is there after the script was lost', async () => {
    await ask(store, limit, { cost: 60 });
    expect(await store.learn!(counter, lesson({}, { accepted: 60 }))).toMatchObject({ rate: 3660 });
    await redis.script('FLUSH');
    const [learnt] = await Promise.all([store.learn!(counter, lesson({}, {})), store.learn!(counter, lesson({}))]);
    expect(learnt).toMatchObject({ rate: 3660 });
  });

  it('is gone with the data of the server, and learnt anew', async () => {
    const told = lesson({ window: 7, remaining: 3, resetAfterMs: 5000, inFlight: 1 }, { quota: 100, windowMs: 5000 });
    const adopted = { rate: 100, intervalMs: 5000, burst: 100 };
    expect(await store.learn!(counter, told)).toEqual(adopted);
    expect(await left()).toBe(2);
    await redis.flushall();
    expect(await left()).toBe(100);
    expect(await store.learn!(counter, lesson({}, {}))).toMatchObject({ rate: 60, burst: 1 });
    expect(await store.learn!(counter, told)).toEqual(adopted);
    expect(await left()).toBe(2);
  });

  it.each(['x', 'y'.repeat(72), '\xff'.repeat(72)])(
    'begins anew where its keys hold something else (%#)',
    async (value) => {
      await store.learn!(counter, lesson({ window: 7, remaining: 3, resetAfterMs: 5000 }, {}));
      const [note, rate] = (await redis.keys('*:learnt')).concat(await redis.keys('*:rate'));
      await redis.set(note!, Buffer.from(value, 'latin1'));
      await redis.del(rate!);
      await redis.lpush(rate!, 'a list');
      expect(await store.learn!(counter, lesson({}, {}))).toMatchObject({ rate: 60 });
      await redis.set(rate!, Buffer.from(value, 'latin1'));
      const learnt = await store.learn!(counter, lesson({}, {}));
      for (const number of Object.values(learnt!)) expect(Number.isSafeInteger(number) && number >= 1).toBe(true);
    },
  );

  it('goes on with what instances of before noted of a window', async () => {
    await store.learn!(counter, lesson({ window: 7, remaining: 60, resetAfterMs: MINUTE, inFlight: 20 }));
    expect(await left()).toBe(39);
    const [key] = await redis.keys('*:learnt');
    const note = (await redis.getBuffer(key!))!;
    expect(note).toHaveLength(80 + 24);
    for (const [size, remaining] of [
      [72, 39],
      [40, 40],
    ] as const) {
      await redis.set(key!, Buffer.concat([note.subarray(0, size), note.subarray(80)]));
      await store.learn!(counter, lesson({ instance: 2 }));
      expect(await left()).toBe(remaining);
    }
    await store.learn!(counter, lesson());
    expect(await left()).toBe(60);
    expect(await redis.getBuffer(key!)).toHaveLength(80);
  });

  it('has keys that all run out, and that reset deletes', async () => {
    await ask(store, limit);
    await store.learn!(
      counter,
      lesson({ window: 7, remaining: 3, resetAfterMs: 5000, blockMs: 900 }, { refused: true }),
    );
    const keys = await redis.keys('*');
    expect(keys).toHaveLength(3);
    for (const key of keys) expect(await redis.pttl(key)).toBeGreaterThan(0);
    await store.reset([counter]);
    expect(await redis.keys('*')).toEqual([]);
  });

  it.each([
    ['do not know yet how rates are learnt', before],
    ['do not learn yet', first],
  ])('holds for instances that %s', async (_which, script) => {
    expect(script.length).toBeLessThan(scripts.decisions.length);
    const old = storeWith(script);
    await store.learn!(
      counter,
      lesson({ window: 7, remaining: 30, resetAfterMs: MINUTE }, { quota: 100, windowMs: MINUTE }),
    );
    expect(await left(old)).toBe(30);
    await ask(old, limit, { cost: 10 });
    expect(await left()).toBe(20);
    await store.learn!(counter, lesson({ blockMs: 5000 }, { refused: true }));
    expect(await ask(old, limit)).toMatchObject({ allowed: false, retryAfterMs: 5000 });
    clock.advanceMs(5000);
    expect(await ask(old, limit)).toMatchObject({ allowed: true });
    expect(await store.learn!(counter, lesson({}, {}))).toMatchObject({ rate: 50, intervalMs: MINUTE });
  });
});
