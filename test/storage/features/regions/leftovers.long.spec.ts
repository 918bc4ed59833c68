import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { CounterIndex, LEFT_AFTER_MS } from '../../../../lib/storage/features/regions/counter-index.js';
import { Home } from '../../../../lib/storage/features/regions/home.js';
import { Leftovers } from '../../../../lib/storage/features/regions/leftovers.js';
import { RegionStore } from '../../../../lib/storage/features/regions/region.store.js';
import { InstanceChannel } from '../../../../lib/storage/redis/instance-channel.js';
import { type LimitDefinition, RateLimitStoreError, type RegionHolding } from '../../../../lib/index.js';
import { freshPrefix } from '../../../support/limits/stores.js';
import { stopTime } from '../../../support/time/stopped-time.js';
import { until } from '../../../support/time/until.js';
import { type AppInRegion, type RegionName, World } from './world.js';

const define = {
  year: { algo: 'calendar-window', rate: 60, period: 'year', scope: 'world' },
  hour: { algo: 'fixed-window', rate: 60, interval: '1h', scope: 'world' },
} satisfies Record<string, LimitDefinition>;

/** Takes units one at a time: a region takes more in advance meanwhile. */
async function use(app: AppInRegion, name: string, count: number, key = 'acme'): Promise<void> {
  for (let unit = 0; unit < count; unit++) expect((await app.limiters.for(name).consume(key)).allowed).toBe(true);
}

async function takeAll(app: AppInRegion, name: string, key = 'acme'): Promise<number> {
  let taken = 0;
  while ((await app.limiters.for(name).consume(key)).allowed) taken++;
  return taken;
}

/** What a region holds, as the home says. */
async function heldOf(app: AppInRegion, name: string, region: RegionName, key = 'acme'): Promise<RegionHolding> {
  const regions = await app.limiters.for(name).regions(key);
  return regions.find((each) => each.region === region)!;
}

describe('units of a region whose instances end', () => {
  let world: World;
  let prefix: string;

  beforeAll(async () => {
    world = await World.start();
  }, 300_000);
  afterAll(() => world.stop());

  beforeEach(() => {
    prefix = freshPrefix();
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await world.closeApps();
  });

  const start = (region: RegionName) => world.app(region, { limits: { prefix, define } });
  /** The last instance waits two seconds for the home to take its units back. None of them passes meanwhile. */
  const stop = async (app: AppInRegion) => {
    world.apps.splice(world.apps.indexOf(app), 1);
    stopTime();
    await app.nest.close();
    jest.useRealTimers();
  };
  /**
   * The same, where an exchange has to be sent again, after half a second: time goes on, but never by the two seconds. It slows down, so
   * that a busy machine has half a minute to begin that wait.
   */
  const stopWhileTimePasses = async (app: AppInRegion) => {
    const realTimeout = globalThis.setTimeout;
    const state = { isClosed: false };
    const closed = stop(app).finally(() => (state.isClosed = true));
    for (let passed = 0; passed < 1900 && !state.isClosed;) {
      const step = passed < 900 ? 100 : 1;
      await new Promise((resolve) => void realTimeout(resolve, 50));
      if (!state.isClosed) jest.advanceTimersByTime(step);
      passed += step;
    }
    await closed;
  };
  /** Ends an app as a crash does: it says nothing. */
  const crash = (app: AppInRegion) => {
    jest.spyOn(Leftovers.prototype, 'end').mockResolvedValueOnce();
    return stop(app);
  };
  /** Lets time pass for the index of a region. */
  const later = async (region: RegionName, ms = LEFT_AFTER_MS + 1000) => {
    const redis = new Redis(world.serverOf(region).url);
    const key = `${prefix}:{held:${region}}:counters`;
    const members = await redis.zrange(key, '0', '-1');
    for (const member of members) await redis.zincrby(key, -ms, member);
    await redis.quit();
    return members.length;
  };
  it.each(['year', 'hour'])('go back when the last instance closes: %s', async (name) => {
    const [us, eu] = [await start('us'), await start('eu')];
    await use(us, name, 24);
    await stop(us);
    expect(await takeAll(eu, name)).toBe(36);
  });

  it('go back of all keys when the last instance closes, also of those that others looked after', async () => {
    const [us, other, eu] = [await start('us'), await start('us'), await start('eu')];
    for (const key of ['a', 'b', 'x'.repeat(100)]) await use(us, 'year', 24, key);
    await use(other, 'year', 24, 'c');
    await stop(us);
    await stop(other);
    for (const key of ['a', 'b', 'c', 'x'.repeat(100)]) expect(await takeAll(eu, 'year', key)).toBe(36);
  });

  it('go back also where the index cannot be used', async () => {
    const [us, eu] = [await start('us'), await start('eu')];
    await use(us, 'year', 24);
    for (const method of ['leave', 'left'] as const) {
      jest.spyOn(CounterIndex.prototype, method).mockRejectedValue(new RateLimitStoreError('NOPERM'));
    }
    await stop(us);
    expect(await takeAll(eu, 'year')).toBe(36);
  });

  it.each([0, 60_000])(
    'go back also when another instance closes in the middle of an exchange (latency: %d ms)',
    async (latencyMs) => {
      const opened = jest.spyOn(Home.prototype, 'open');
      const [us, other, eu] = [await start('us'), await start('us'), await start('eu')];
      const home = opened.mock.contexts[1] as Home;
      await use(us, 'year', 24);
      const grant = jest.spyOn(home, 'grant').mockImplementationOnce(() => new Promise(() => undefined));
      const looks = other.limiters.for('year').peek('acme');
      looks.catch(() => undefined);
      await until(() => grant.mock.calls.length > 0);
      await stop(other);
      if (latencyMs > 0) jest.spyOn(Home.prototype, 'latencyMs', 'get').mockReturnValue(latencyMs);
      // The last instance makes that exchange again.
      await stopWhileTimePasses(us);
      expect(await takeAll(eu, 'year')).toBe(36);
    },
  );

  it('stay while other instances are there, which give them back when nobody uses them', async () => {
    const [us, other, eu] = [await start('us'), await start('us'), await start('eu')];
    await use(other, 'year', 1, 'another');
    await use(us, 'year', 24);
    const { held } = await heldOf(eu, 'year', 'us');
    expect(held).toBeGreaterThan(0);
    await stop(us);
    expect(await heldOf(eu, 'year', 'us')).toMatchObject({ held });
    expect(await later('us')).toBeGreaterThanOrEqual(2);
    await until(async () => (await heldOf(eu, 'year', 'us')).held === 0);
    expect(await takeAll(eu, 'year')).toBe(36);
  });

  it('go back when another instance starts after a crash, though nobody asks there', async () => {
    const [us, eu] = [await start('us'), await start('eu')];
    await use(us, 'year', 24);
    await until(async () => (await later('us', 0)) === 1);
    await crash(us);
    await later('us');
    await start('us');
    await until(async () => (await heldOf(eu, 'year', 'us')).held === 0);
    expect(await takeAll(eu, 'year')).toBe(36);
    // What holds nothing is forgotten.
    await until(async () => (await later('us')) === 0);
  });

  it('go back by the rate that is in force', async () => {
    const [us, eu] = [await start('us'), await start('eu')];
    await use(us, 'year', 24);
    await until(async () => (await later('us', 0)) === 1);
    await crash(us);
    await eu.limiters.setRate('year', { rate: 80 });
    await later('us');
    await start('us');
    await until(async () => (await heldOf(eu, 'year', 'us')).held === 0);
    expect(await takeAll(eu, 'year')).toBe(56);
  });

  it('are forgotten with a reset in another region, also where nobody looks after them', async () => {
    const [us, eu] = [await start('us'), await start('eu')];
    await use(us, 'year', 24);
    await until(async () => (await later('us', 0)) === 1);
    await crash(us);
    const again = await start('us');
    await eu.limiters.for('year').reset('acme');
    await until(async () => (await again.limiters.for('year').peek('acme')).remaining === 60);
    expect(await takeAll(eu, 'year')).toBe(60);
    expect(await takeAll(again, 'year')).toBe(0);
  });

  it('that came after a reset stay, though the region hears late of its own reset', async () => {
    const us = await start('us');
    await use(us, 'year', 1);
    const publish = jest.spyOn(InstanceChannel.prototype, 'publish').mockResolvedValueOnce();
    await us.limiters.for('year').reset('acme');
    const [message] = publish.mock.calls[0]!;
    await use(us, 'year', 24);
    const home = new Redis(world.home.url);
    const heard = jest.spyOn(RegionStore.prototype, 'onMessage');
    await home.publish(`${prefix}:world:ended`, message);
    await until(() => heard.mock.calls.length > 0);
    await home.quit();
    // What came after it was heard is done.
    await us.limiters.for('year').regions('acme');
    expect(await takeAll(us, 'year')).toBe(36);
  });
});

describe('the index of the counters of a region', () => {
  let world: World;
  let redis: Redis;
  let key: string;

  beforeAll(async () => {
    world = await World.start();
    redis = new Redis(world.home.url);
  }, 300_000);
  afterAll(async () => {
    await redis.quit();
    await world.stop();
  });

  beforeEach(() => {
    key = freshPrefix();
  });

  const indexOf = (instance: string) => new CounterIndex(redis, key, instance, 3000);

  it('knows what was left, the longest first', async () => {
    const index = indexOf('a');
    await index.note(['one']);
    await redis.zadd(`${key}:counters`, 1000, 'two', 2000, 'three');
    expect(await index.left(LEFT_AFTER_MS, 10)).toEqual([
      { address: 'two', since: '1000' },
      { address: 'three', since: '2000' },
    ]);
    expect(await index.left(LEFT_AFTER_MS, 1)).toHaveLength(1);
  });

  it('forgets nothing that somebody has looked after since', async () => {
    const index = indexOf('a');
    await redis.zadd(`${key}:counters`, 1000, 'two', 2000, 'three');
    const left = await index.left(LEFT_AFTER_MS, 10);
    await index.note(['two']);
    await index.drop(left);
    expect(await index.has('two')).toBe(true);
    expect(await index.has('three')).toBe(false);
  });

  it('says to each instance that ends how many others are there', async () => {
    const [a, b] = [indexOf('a'), indexOf('b')];
    await a.note(['one']);
    await b.note(['one']);
    expect(await a.leave(['one'])).toBe(1);
    expect(await b.left(LEFT_AFTER_MS, 10)).toEqual([]);
    expect(await b.leave(['one'])).toBe(0);
    // One that said nothing for long is gone.
    await a.note(['one']);
    await redis.zadd(`${key}:instances`, 1000, 'a');
    await b.note(['one']);
    expect(await b.leave([])).toBe(0);
  });

  it('takes values of another type for none', async () => {
    const index = indexOf('a');
    for (const what of ['counters', 'instances']) {
      await redis.set(`${key}:${what}`, 'hello');
      await index.note(['one']);
      expect(await index.has('one')).toBe(true);
    }
    await redis.set(`${key}:counters`, 'hello');
    expect(await index.left(0, 10)).toEqual([]);
  });

  it('has keys that lapse, whoever writes them first', async () => {
    await indexOf('a').leave(['one']);
    expect(await redis.pttl(`${key}:counters`)).toBeGreaterThan(0);
  });

  it('takes thousands of counters at once', async () => {
    const index = indexOf('a');
    const all = Array.from({ length: 10_000 }, (_, each) => `counter ${each}`);
    await index.note(all);
    expect(await redis.zcard(`${key}:counters`)).toBe(10_000);
    expect(await index.leave(all)).toBe(0);
  });
});
