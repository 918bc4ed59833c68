import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Redis } from 'ioredis';
import { MemoryStore, RedisStore, type Store } from '../../../lib/index.js';
import type { Check } from '../../../lib/testing/store/index.js';
import { comparable, compile, connectRedis, freshPrefix, ManualClock } from '../../support/limits/stores.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

const second = compile({ algo: 'gcra', rate: 3, interval: '1s' }, 'second');
const minute = compile({ algo: 'token-bucket', rate: 5, interval: '1m' }, 'minute');
const hour = compile({ algo: 'fixed-window', rate: 4, interval: '1h' }, 'hour');
const log = compile({ algo: 'sliding-log', rate: 2, interval: '1h' }, 'log');

const routes = [[second], [minute, hour], [second, minute, hour]];

const isFast = (program: string) => !/^\[(?:0|-1|-2),/.test(program);

/** What several routes ask in one turn, one after another, of a few clients each. */
function turnOf(checks: number, { limits = routes, areShared = false } = {}): Check[] {
  return Array.from({ length: checks }, (_, i) => {
    const route = i % limits.length;
    const identity = `user:${i % 7}${areShared ? '' : ` of ${route}`}`;
    return { entries: limits[route]!.map((limit) => ({ limit, identity, cost: 1 })) };
  });
}

describe('the checks of a turn that ask different limits', () => {
  let redis: Redis;
  beforeAll(async () => {
    redis = await connectRedis();
  });
  afterAll(() => redis.disconnect());

  /** What a turn of checks was answered, and in how many calls. */
  async function ask(checks: Check[], more: (store: Store) => Promise<unknown>[] = () => []) {
    const clock = new ManualClock();
    const store = new RedisStore(redis, { clock, prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
    await store.open();
    const evalsha = jest.spyOn(redis, 'evalsha');
    try {
      const others = more(store);
      const answers = await store.check(checks);
      await Promise.all(others);
      return { answers, programs: evalsha.mock.calls.map((call) => String(call.at(-1))) };
    } finally {
      evalsha.mockRestore();
      await store.close();
    }
  }

  it.each([2, 9, 90])('travel in one call, which the fast way decides: %i of them', async (count) => {
    for (const limits of [routes, [[second], [minute], [hour]]]) {
      for (const areShared of [false, true]) {
        const memory = new MemoryStore({ clock: new ManualClock().now });
        const checks = turnOf(count, { limits, areShared });
        const { answers, programs } = await ask(checks);
        expect(programs.map(isFast)).toEqual([true]);
        expect(comparable(answers)).toEqual(comparable(await memory.check(checks)));
        await memory.close();
      }
    }
  });

  it('leave what only the general way can decide, and all operations, for one call more', async () => {
    const { programs } = await ask(turnOf(90, { limits: [...routes, [log]] }), (store) => [
      store.penalize({ limit: minute, identity: 'other', units: 1 }),
    ]);
    expect(programs.map(isFast)).toEqual([true, false]);
  });

  it('stay with the others of their identity, in the order in which they came', async () => {
    const memory = new MemoryStore({ clock: new ManualClock().now });
    const checks = turnOf(90, { areShared: true });
    const more = turnOf(6, { limits: [[log, hour]] }).slice(0, 1);
    const { answers, programs } = await ask([...checks.slice(0, 40), ...more, ...checks.slice(40)]);
    expect(programs.map(isFast)).toEqual([true, false]);
    const expected = await memory.check([...checks.slice(0, 40), ...more, ...checks.slice(40)]);
    expect(comparable(answers)).toEqual(comparable(expected));
    await memory.close();
  });

  it('are decided in their order around a counter that only the general way can read', async () => {
    const clock = new ManualClock();
    const memory = new MemoryStore({ clock: clock.now });
    const store = new RedisStore(redis, { clock, prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
    const blocked = { limit: minute, identity: 'user:1' };
    await Promise.all([store.block(blocked, 60_000), memory.block(blocked, 60_000)]);
    const checks = turnOf(60, { areShared: true });
    expect(comparable(await store.check(checks))).toEqual(comparable(await memory.check(checks)));
    clock.advanceMs(61_000);
    expect(comparable(await store.check(checks))).toEqual(comparable(await memory.check(checks)));
    await Promise.all([store.close(), memory.close()]);
  });

  it('are decided as in process, if they are all of one kind', async () => {
    const clock = new ManualClock();
    const memory = new MemoryStore({ clock: clock.now });
    const checks = turnOf(60, { limits: [[second, minute, hour]] });
    const { answers, programs } = await ask(checks);
    expect(programs.map(isFast)).toEqual([true]);
    expect(comparable(answers)).toEqual(comparable(await memory.check(checks)));
    await memory.close();
  });

  it('are decided as in process, if limits of one name share counters', async () => {
    const clock = new ManualClock();
    const memory = new MemoryStore({ clock: clock.now });
    const twin = compile({ algo: 'gcra', rate: 3, interval: '1s' }, 'second');
    const checks = ['ab', 'cd', 'bc'].map(([one, other]) => ({
      entries: [
        { limit: second, identity: one!, cost: 1 },
        { limit: twin, identity: other!, cost: 1 },
      ],
    }));
    const { answers } = await ask(checks);
    expect(comparable(answers)).toEqual(comparable(await memory.check(checks)));
    await memory.close();
  });
});
