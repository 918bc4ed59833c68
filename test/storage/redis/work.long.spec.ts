import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import {
  type AlgorithmOptions,
  LimiterService,
  RateLimitArgumentError,
  RateLimitModule,
  RedisStore,
} from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-servers.js';
import { ask, compile, featuresOfOptions, featureTerms, keyOf, ManualClock } from '../../support/limits/stores.js';
import { PATIENCE, PATIENCE_MS } from '../../support/redis/patience.mjs';

/** What the server may be kept busy for by one check: microseconds. */
const MOST_A_CHECK = 1000;
const identity = 'user:42';
const HOUR_MS = 3_600_000;

/** Adds requests to a log: a millisecond from one to the next, from a number on, 8 units each. */
const SEED = `
local start, first, count = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
for chunk = first, first + count - 1, 1000 do
  local values = {}
  for number = chunk, chunk + 999 do
    values[#values + 1] = string.format('%.0f', start + number * 1000)
    values[#values + 1] = string.format('%.0f', (number * 8 + 2 ^ 23) % 2 ^ 24 - 2 ^ 23)
  end
  redis.call('RPUSH', KEYS[1], unpack(values))
end`;

let server: RedisServer;
let redis: Redis;
let clock: ManualClock;
let store: RedisStore;

beforeAll(async () => {
  server = await startRedis();
  // Not the one of an app, which gives up a server that copies a million requests for longer than two seconds.
  redis = new Redis(server.url, { lazyConnect: true });
  await redis.connect();
});
afterAll(async () => {
  redis?.disconnect();
  await server?.stop();
});
beforeEach(async () => {
  await redis.flushall();
  clock = new ManualClock();
  store = new RedisStore(redis, { clock, prefix: 'work', timeoutMs: PATIENCE_MS });
  await store.open();
});

/** What a server with a core of its own does in `YARDSTICK_MICROS`. Beside busy processes it takes longer for all. */
const YARDSTICK = `for i = 1, 1000 do redis.call('SET', KEYS[1], i) redis.call('GET', KEYS[1]) end`;
const YARDSTICK_MICROS = 650;

/** Calls of the script since the last reset of the counts, and how long they took on the server. */
async function calls(command = 'evalsha'): Promise<{ count: number; micros: number }> {
  const stats = await redis.info('commandstats');
  const [, count, micros] = new RegExp(`cmdstat_${command}:calls=(\\d+),usec=(\\d+)`).exec(stats) ?? [];
  return { count: Number(count ?? 0), micros: Number(micros ?? 0) };
}

/**
 * How long the script takes on a server with a core of its own: the least of several times, since other processes may have
 * stopped it, by a yardstick that they slow down as well. What looks long is tried more often: other processes only add to it.
 */
async function microsOf(act: () => Promise<unknown>, times = 3, mostTimes = 35): Promise<number> {
  let [least, yardstick, micros] = [Infinity, Infinity, Infinity];
  for (let time = 0; time < times || (micros >= MOST_A_CHECK && time < mostTimes); time++) {
    await redis.config('RESETSTAT');
    await act();
    await redis.eval(YARDSTICK, 1, 'yardstick');
    least = Math.min(least, (await calls()).micros);
    yardstick = Math.min(yardstick, (await calls('eval')).micros);
    micros = Math.round(least * Math.min(1, YARDSTICK_MICROS / yardstick));
  }
  return micros;
}

const check = (options: AlgorithmOptions, cost = 1) => ask(store, compile(options, options.algo), { identity, cost });

function expectToBeShort(times: Record<string, number>): void {
  for (const [what, micros] of Object.entries(times)) {
    expect([what, micros < MOST_A_CHECK ? 'short' : micros]).toEqual([what, 'short']);
  }
}

async function fill(options: AlgorithmOptions, count: number, cost = 1, everyMs = 0.01): Promise<void> {
  const entry = { limit: compile(options, options.algo), identity, cost };
  for (let done = 0; done < count; done += 5000) {
    await Promise.all(
      Array.from({ length: 10 }, () => store.check(Array.from({ length: 500 }, () => ({ entries: [entry] })))),
    );
    clock.advanceMs(everyMs * 5000);
  }
}

const held = (limit: number) => ({ algo: 'concurrency', limit, ttl: '1h' }) as const;

describe('one check keeps the server busy for less than a millisecond', () => {
  it('concurrency, with 50,000 leases', async () => {
    await fill(held(50_000), 50_000);
    const times = {
      refused: await microsOf(() => check(held(50_000))),
      'refused a large cost': await microsOf(() => check(held(50_000), 30_000)),
      'refused by a limit that shrank': await microsOf(() => check(held(10))),
      granted: await microsOf(() => check(held(60_000))),
      released: await microsOf(async () => {
        const limit = compile(held(60_000), 'concurrency');
        const { ticket } = await ask(store, limit, { identity });
        await store.refund([{ limit, identity, units: 1, ticket }]);
      }),
    };
    expectToBeShort(times);
  });

  it('concurrency, with 50,000 leases of which many have ended, or all were given by a clock that was set back', async () => {
    await fill(held(50_000), 50_000);
    const full = clock.now();
    clock.advanceMs(3_600_000 - 250);
    const times: Record<string, number> = { 'half have ended': await microsOf(() => check(held(50_000))) };
    // Though few of them are taken away by a check, none that has ended counts.
    await expect(check(held(50_000))).resolves.toMatchObject({ allowed: true });
    expect((await check(held(50_000))).remaining).toBeGreaterThan(20_000);
    clock.micros = full - 86_400_000_000;
    times['set back'] = await microsOf(() => check(held(50_000)));
    clock.micros = full + 3_600_000_000;
    times['all have ended'] = await microsOf(() => check(held(50_000)));
    expectToBeShort(times);
  });

  it('a plan that uses credits, with 10,000 running holds', async () => {
    const options = {
      algo: 'calendar-window',
      period: 'month',
      rate: 10,
      credits: true,
      hold: '1d',
      onLapse: 'release',
    } as const;
    const limit = compile(options, 'plan');
    await store.credit({ limit, identity, units: 1_000_000 });
    const check = { entries: [{ limit, identity, cost: 1 }], hold: true, refundable: true };
    await Promise.all(Array.from({ length: 20 }, () => store.check(Array.from({ length: 500 }, () => check))));
    expectToBeShort({
      charged: await microsOf(() => ask(store, limit, { identity })),
      reserved: await microsOf(() => store.check([check])),
      refunded: await microsOf(() => store.refund([{ limit, identity, units: 1 }])),
    });
  });

  it('sliding-window, with 1,000 slices', async () => {
    const fine = { algo: 'sliding-window', rate: 1e6, interval: '1h', slices: 1000 } as const;
    for (let slice = 0; slice < 1000; slice++) {
      clock.advanceMs(3600);
      await check(fine, 60_000 % (slice + 900));
    }
    const coarse = { ...fine, slices: 7 };
    expectToBeShort({
      allowed: await microsOf(() => check(fine)),
      refused: await microsOf(() => check(fine, 1e6)),
      'in the next slice': await microsOf(() => {
        clock.advanceMs(3600);
        return check(fine);
      }),
      'refused under a longer interval': await microsOf(() => check({ ...fine, interval: '1d' }, 1e6)),
      'under other slices and back': await microsOf(async () => {
        await check(coarse);
        await check(fine);
      }),
    });
  });

  it.each([200_000, 1_000_000])('sliding-log, with %i requests', async (count) => {
    const log = { algo: 'sliding-log', rate: 8_388_607, interval: '1h' } as const;
    const limit = compile(log, 'sliding-log');
    const key = keyOf('work', { limit, identity });
    // As the script stores them: a millisecond from one to the next, 8 units each.
    const start = clock.now();
    await redis.rpush('seed', 0);
    for (let done = 0; done < count; done += 50_000) await redis.eval(SEED, 1, 'seed', start, done + 1, 50_000);
    const longer = { ...log, interval: '1d' } as const;
    const at = (ms: number, act: () => Promise<unknown>) =>
      microsOf(async () => {
        await redis.copy('seed', key, 'REPLACE');
        clock.micros = start + ms * 1000;
        await act();
      });
    const times = {
      allowed: await at(count, () => check(longer)),
      refused: await at(count, () => check(longer, 4_000_000)),
      'a few have left': await at(HOUR_MS + 100, () => check(log)),
      'half have left': await at(HOUR_MS + count / 2, () => check(log)),
      'all have left': await at(HOUR_MS + count, () => check(log)),
      'set back': await at(-count - 10 * HOUR_MS, () => check(log)),
    };
    expectToBeShort(times);
  });

  it('many limits a check', async () => {
    const limits = Array.from({ length: 100 }, (_, number) =>
      compile({ algo: 'gcra', rate: 10, interval: '1h' }, `gcra ${number}`),
    );
    const entries = limits.map((limit) => ({ limit, identity, cost: 1 }));
    expectToBeShort({ allowed: await microsOf(() => store.check([{ entries }])) });
  });
});

/** The calls that so many checks of different identities take. */
async function countOf(options: AlgorithmOptions, checks: number): Promise<number> {
  const limit = compile(options, options.algo);
  await redis.flushall();
  await redis.config('RESETSTAT');
  const decisions = await store.check(
    Array.from({ length: checks }, (_, number) => ({ entries: [{ limit, identity: `user:${number}`, cost: 1 }] })),
  );
  expect(decisions.flat().filter(({ allowed }) => allowed)).toHaveLength(checks);
  return (await calls()).count;
}

/** 500 checks of different identities. */
const checksOf = (limitOf: (number: number) => CompiledLimit) =>
  Array.from({ length: 500 }, (_, number) => ({
    entries: [{ limit: limitOf(number), identity: `user:${number}`, cost: 1 }],
  }));

describe('calls are cut by their work', () => {
  it('as few as may be, where each check is cheap', async () => {
    expect(await countOf({ algo: 'gcra', rate: 1, interval: '1h' }, 1000)).toBe(2);
    expect(await countOf({ algo: 'sliding-window', rate: 1, interval: '1h' }, 1000)).toBe(2);
  });

  it('more, where each is dear, and none that asks more than may be asked at once is lost', async () => {
    expect(await countOf({ algo: 'sliding-window', rate: 1, interval: '1h', slices: 1000 }, 500)).toBe(21);
    expect(await countOf({ algo: 'sliding-window', rate: 1, interval: '1h', slices: 100 }, 500)).toBe(3);
    const limits = Array.from({ length: 40 }, (_, number) =>
      compile({ algo: 'sliding-window', rate: 1, interval: '1h', slices: 1000 }, `window ${number}`),
    );
    const entries = limits.map((limit) => ({ limit, identity, cost: 1 }));
    const [first, second] = await store.check([{ entries }, { entries }]);
    expect(first!.every(({ allowed }) => allowed)).toBe(true);
    expect(second!.some(({ allowed }) => allowed)).toBe(false);
  });

  it('more, where checks are recorded or shared', async () => {
    const options = { algo: 'gcra', rate: 1000, interval: '1h' } as const;
    const recorded = new CompiledLimit(options, {
      location: 'test',
      featuresOfOptions,
      name: 'recorded',
      features: featureTerms({ usage: '400d' }, 'test'),
    });
    const shares = featureTerms({ share: { by: 'global' } }, 'test');
    const shared = new CompiledLimit(options, {
      location: 'test',
      featuresOfOptions,
      name: 'shared',
      features: shares,
    });
    const counts = [];
    for (const limitOf of [
      () => recorded,
      (number: number) => shared.meet({ tenant: { id: `t${number}`, weight: 1 } }),
    ]) {
      await redis.config('RESETSTAT');
      await store.check(checksOf(limitOf));
      counts.push((await calls()).count);
    }
    expect(counts).toEqual([2, 4]);
  });

  it('more, where many leave a queue whose slots others then have', async () => {
    const limit = compile({ algo: 'leaky-bucket', rate: 1000, interval: '1h', queue: 1000 }, 'queue');
    const entered = await store.check(
      Array.from({ length: 750 }, () => ({ refundable: true, entries: [{ limit, identity, cost: 1 }] })),
    );
    await redis.config('RESETSTAT');
    // Every other one, so that no slot is beside another free one.
    const leaving = entered.flatMap(([decision], index) => (index % 2 === 0 ? [decision!.ticket] : []));
    await store.refund(leaving.map((ticket) => ({ limit, identity, units: 1, ticket })));
    expect((await calls()).count).toBe(3);
  });
});

describe('one check of code', () => {
  const options = { algo: 'gcra', rate: 1000, interval: '1h' } as const;
  const listOf = (count: number, more: object) =>
    Array.from({ length: count }, (_, number) => ({
      limit: { ...options, ...more, name: `limit ${number}` },
      key: 'k',
    }));

  it.each(['in process', 'on Redis'])('has a most, by what it asks of the server, %s', async (where) => {
    const module = await Test.createTestingModule({
      imports: [
        RateLimitModule.forRoot({
          ...(where === 'on Redis' && { redis }),
          define: Object.fromEntries(
            listOf(251, { usage: '400d' }).map(({ limit: { name, ...limit } }) => [name, limit]),
          ),
          timeout: PATIENCE,
        }),
      ],
    }).compile();
    await module.init();
    try {
      const limiters = module.get(LimiterService);
      expect((await limiters.check(listOf(1000, {}))).allowed).toBe(true);
      const named = listOf(251, {}).map(({ limit, key }) => ({ limit: limit.name, key }));
      expect((await limiters.check(named.slice(0, 250))).allowed).toBe(true);
      const refused =
        'check: expected limits with the work of at most 2500 plain ones, received 251 limits with that of 2510. Split the list';
      await expect(limiters.check(named)).rejects.toThrow(new RateLimitArgumentError(refused));
      await expect(limiters.reserve(named)).rejects.toThrow(RateLimitArgumentError);
    } finally {
      await module.close();
    }
  });
});
