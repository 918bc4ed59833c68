import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import { type Limiter, type RateLimitModuleOptions, RateLimitStoreError, RedisStore } from '../../lib/index.js';
import { CompiledLimit, type StoreDecision } from '../../lib/testing/store/index.js';
import { RatesApp, until } from '../app/overrides/overrides-app.js';
import { type RedisCluster, type RedisServer, startCluster, startRedis } from '../support/redis/redis-servers.js';
import {
  ask,
  compile,
  featuresOfOptions,
  featureTerms,
  ManualClock,
  type StoredOptions,
} from '../support/limits/stores.js';
import { pagesOf, unitsOf } from '../support/limits/usage.js';
import { connectClient, libraryClient } from '../support/redis/library-client.js';
import { scripts } from '../support/redis/scripts.js';

const GUIDE = new URL('../../docs/guides/redis-users.md', `file://${process.cwd()}/test/security/`);
const PREFIX = 'sluice';
/** Those of a Cluster, as the guide names them. */
const CLUSTER_RIGHTS = /On a Cluster, the user also needs `([^`]+)`/.exec(readFileSync(GUIDE, 'utf8'))![1]!.split(' ');

/** The rules as the guide prints them, without the user's name. */
const documented = /ACL SETUSER \S+ ([^`]+)/.exec(readFileSync(GUIDE, 'utf8'))![1]!.trim().split(/\s+/);
const commandRights = documented.filter((rule) => rule.startsWith('+'));

const limits: Record<string, StoredOptions> = {
  fixed: { algo: 'fixed-window', rate: 5, interval: '1m' },
  monthly: { algo: 'calendar-window', rate: 5, period: 'minute', retain: '3m' },
  sliding: { algo: 'sliding-window', rate: 5, interval: '1m' },
  log: { algo: 'sliding-log', rate: 5, interval: '1m' },
  bucket: { algo: 'token-bucket', rate: 5, interval: '1m' },
  gcra: { algo: 'gcra', rate: 5, interval: '1m' },
  shaper: { algo: 'leaky-bucket', rate: 5, interval: '1m' },
  held: { algo: 'concurrency', limit: 5, ttl: '1m' },
  budget: { algo: 'budget', limit: 5, period: 'minute', retain: '3m', hold: '1s', onLapse: 'release' },
  plan: { algo: 'calendar-window', rate: 5, period: 'minute', rollover: 0.5, credits: true },
};

let server: RedisServer;
let admin: Redis;
let users = 0;
let logged: string[];

/** A user of Redis with these rules, and the URL of that user. */
async function userOf(rules: readonly string[]): Promise<string> {
  const name = `user${++users}`;
  await admin.call('ACL', 'SETUSER', name, ...rules);
  return `redis://${name}:password@${server.host}:${server.port}`;
}

const without = (...rights: string[]) => documented.filter((rule) => !rights.includes(rule));

beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.url);
});
afterAll(async () => {
  admin?.disconnect();
  await server?.stop();
});
beforeEach(async () => {
  await admin.flushall();
  logged = [];
  const remember = (message: unknown) => void logged.push(String(message));
  jest.spyOn(Logger.prototype, 'warn').mockImplementation(remember);
  jest.spyOn(Logger.prototype, 'error').mockImplementation(remember);
  jest.spyOn(console, 'warn').mockImplementation(remember);
});
afterEach(() => {
  jest.restoreAllMocks();
});

/** Everything that the script can do, on a clock that is moved. */
async function useScript(url: string): Promise<void> {
  const client = await libraryClient(url);
  try {
    await connectClient(client);
    const clock = new ManualClock();
    const store = new RedisStore(client, { prefix: PREFIX, timeoutMs: 5000, clock });
    await store.open();
    for (const [name, options] of Object.entries(limits)) {
      const limit = compile(options, name);
      const counter = { limit, identity: 'user:1' };
      const held = limit.algorithm.leases !== undefined;
      const consume = async (cost = 1) => {
        const [decisions] = await store.check([{ entries: [{ ...counter, cost }], refundable: true }]);
        const { ticket, chargedAt, source } = decisions![0]!;
        return { ...counter, units: cost, ticket, chargedAt, source };
      };
      const first = await consume();
      clock.advanceMs(20_000);
      const second = await consume(2);
      await ask(store, limit, { identity: 'user:1', peek: true });
      await store.refund([second]);
      if (held) expect(await store.renew({ ...counter, units: 1, ticket: first.ticket! })).toBe(true);
      else await store.penalize({ ...counter, units: 9 });
      await store.reserve({ ...counter, cost: 1, maxWaitMs: 1000 });
      clock.advanceMs(50_000);
      await consume(5);
      await consume(5);
      for (const minutes of [1, 2, 5, 9]) {
        clock.advanceMs(minutes * 60_000);
        await consume();
      }
      if (limit.algorithm.history !== undefined) await store.history(counter);
      await store.block(counter, 1000);
      await store.block(counter, 0);
      await store.reset([counter]);
    }
    // Days that go, that come back with the clock, and units that are given back.
    const features = featureTerms({ usage: '2d' }, 'test');
    const recorded = {
      limit: new CompiledLimit(limits['gcra']!, { location: 'test', featuresOfOptions, name: 'recorded', features }),
      identity: 'user:6',
    };
    for (const hours of [0, 24, -24, 24 * 9, 0]) {
      clock.advanceMs(hours * 3_600_000);
      const [decisions] = await store.check([{ entries: [{ ...recorded, cost: 1 }], refundable: true }]);
      await store.refund([{ ...recorded, units: 1, chargedAt: decisions![0]!.chargedAt }]);
      await ask(store, recorded.limit, { identity: recorded.identity });
    }
    const range = { from: -Infinity, to: Infinity };
    await unitsOf(store, recorded, range);
    for await (const page of pagesOf(store, recorded.limit, range, 500)) expect(page.length).toBeLessThanOrEqual(1);
    // So many holds that the oldest are forgotten.
    const spent = {
      limit: compile({ algo: 'budget', limit: 2000, period: 'year', hold: '1s' }, 'spent'),
      identity: 'user:5',
    };
    const hold = { entries: [{ ...spent, cost: 1 }], hold: true, refundable: true };
    await store.check(Array.from({ length: 1001 }, () => hold));
    clock.advanceMs(1000);
    const [[one]] = (await store.check([hold])) as [[StoreDecision]];
    await store.refund([{ ...spent, units: 1, ticket: one.ticket, chargedAt: one.chargedAt, actual: 2 }]);
    await expect(ask(store, spent.limit, { identity: 'user:5', peek: true })).resolves.toMatchObject({
      remaining: 997,
    });
    // A window of which all was given back.
    const emptied = {
      limit: compile({ algo: 'fixed-window', rate: 5, interval: '1m', hold: '1s' }, 'emptied'),
      identity: 'user:7',
    };
    const [[held]] = (await store.check([{ ...hold, entries: [{ ...emptied, cost: 1 }] }])) as [[StoreDecision]];
    await store.refund([{ ...emptied, units: 1, ticket: held.ticket, chargedAt: held.chargedAt, actual: 0 }]);
    // Keys of which no record is kept.
    const bounded = featureTerms({ usage: { keep: '2d', maxKeys: 1 } }, 'test');
    const full = new CompiledLimit(limits['gcra']!, {
      location: 'test',
      featuresOfOptions,
      name: 'full',
      features: bounded,
    });
    for (let count = 0; count < 6; count++) await ask(store, full, { identity: `{user:8}:${count}` });
    await unitsOf(store, { limit: full, identity: '{user:8}:5' }, range);
    // More leases than are looked at at once have ended, and the last one is released.
    const many = compile({ algo: 'concurrency', limit: 1000, ttl: '1m' }, 'many');
    const entry = { limit: many, identity: 'user:4', cost: 1 };
    await store.check(Array.from({ length: 300 }, () => ({ entries: [entry] })));
    clock.advanceMs(60_000);
    const [last] = await store.check([{ entries: [entry] }]);
    await store.refund([{ ...entry, units: 1, ticket: last![0]!.ticket }]);
    const log = compile(limits['log']!, 'log');
    const refunded = { limit: log, identity: 'user:2', units: 1 };
    for (let count = 0; count < 3; count++) await ask(store, log, { identity: 'user:2' });
    await store.refund([refunded]);
    // A wrong type under a counter's key is deleted.
    await admin.set(`${PREFIX}:{user:3}::log:sl`, 'no list');
    await ask(store, log, { identity: 'user:3' });
  } finally {
    client.disconnect();
  }
}

/** Everything that instances of an app do: what is changed or given back on one is heard by the other. */
async function useApps(redis: NonNullable<RateLimitModuleOptions['redis']>, patienceMs = 5000): Promise<void> {
  const apps: RatesApp[] = [];
  try {
    for (let count = 0; count < 2; count++) apps.push(await RatesApp.start({ redis, prefix: PREFIX }));
    const [one, two] = apps.map(({ service }) => service) as [RatesApp['service'], RatesApp['service']];
    await one.setRate('login', { rate: 2 });
    await until(() => apps[1]!.quota(), 2, patienceMs);
    expect(await one.clearRate('login')).toBe(true);
    for (const expiresIn of [1, '1h'] as const)
      await one.setRate('login', { rate: 3 }, { key: 'user:rich', expiresIn });
    await until(() => apps[1]!.quota('login', 'user:rich'), 3, patienceMs);
    const late = await RatesApp.start({ redis, prefix: PREFIX });
    apps.push(late);
    expect(await late.quota('login', 'user:rich')).toBe(3);
    expect(await one.clearRate('login', { key: 'user:rich' })).toBe(true);
    const key = `user:${Math.random()}`;
    const [mine, theirs] = [one, two].map((service) =>
      service.for({ name: 'once', algo: 'gcra', rate: 1, interval: '1h' }),
    ) as [Limiter, Limiter];
    expect(await theirs.consume(key)).toMatchObject({ allowed: true, source: 'redis' });
    await until(async () => (await theirs.consume(key)).source, 'cache', patienceMs);
    await mine.refund(key, 1);
    await until(async () => (await theirs.consume(key)).allowed, true, patienceMs);
  } finally {
    await Promise.all(apps.map((app) => app.close()));
  }
}

describe('the rights that the guide names', () => {
  it('are of every command that a script names, wherever it is called', () => {
    const named = [...(scripts.decisions + scripts.overrides).matchAll(/\b(?:redis\.p?call|ask\w*)\('([A-Z]+)'/g)];
    expect(named.length).toBeGreaterThan(50);
    const missing = new Set(named.map(([, command]) => `+${command!.toLowerCase()}`));
    for (const right of commandRights) missing.delete(right);
    expect([...missing]).toEqual([]);
  });

  it('are enough for all that the library does', async () => {
    const user = await userOf(documented);
    await useScript(user);
    await useApps(user);
    expect(logged).toEqual([]);
    // But for what ioredis tells a server of itself, which is no matter.
    const denied = (await admin.call('ACL', 'LOG')) as unknown[][];
    const objects = denied.map((entry) => String(entry[entry.indexOf('object') + 1]));
    expect(objects.filter((object) => !/^client\|setinfo$/i.test(object))).toEqual([]);
  });

  it.each(commandRights)('are no more than it needs: %s', async (right) => {
    const user = await userOf(without(right));
    const failures: string[] = [];
    const denied = /NOPERM|ACL failure in script|can't run this command/;
    const told = () => [...failures, ...logged].join('\n');
    // A message may be late on a busy machine.
    const patience = [300, 3000, 30_000].map((ms) => () => useApps(user, ms));
    for (const use of [() => useScript(user), ...patience]) {
      if (!denied.test(told())) await use().catch((error: Error) => failures.push(error.message));
    }
    expect(told()).toMatch(denied);
  });

  it.each([`~${PREFIX}:*`, `&${PREFIX}:rates`, `&${PREFIX}:given-back`])(
    'are no more than it needs: %s',
    async (right) => {
      // Before Redis 7 a new user may use all channels.
      const user = await userOf(['resetchannels', ...without(right)]);
      const failures: string[] = [];
      await useApps(user, 300).catch((error: Error) => failures.push(error.message));
      expect([...failures, ...logged].join('\n')).toMatch(/NOPERM/);
    },
  );
});

describe('a right that is missing', () => {
  const gcra = { name: 'g', algo: 'gcra', rate: 2, interval: '1h' } as const;
  const held = { name: 'h', algo: 'concurrency', limit: 2, ttl: '1h' } as const;

  it.each<[string, string[], RegExp]>([
    ['to run scripts', without('+evalsha'), /NOPERM.*'evalsha'/],
    ['to load scripts', without('+script|load'), /NOPERM.*'script/],
    ['to the keys', without(`~${PREFIX}:*`), /NOPERM.*key/i],
    ['of what every algorithm does', without('+mget'), /ACL failure in script.*'mget'|user executing the script can't/],
    ['to anything', ['reset', 'on', '>password', '+info'], /NOPERM/],
  ])('%s does what onStoreError says, with one line in the log', async (_, rules, reason) => {
    await admin.script('FLUSH');
    const app = await RatesApp.start({
      redis: await userOf(rules),
      prefix: PREFIX,
      refusalCache: false,
      define: {},
      limits: [],
    });
    const allowed = (onStoreError: 'local' | 'allow') =>
      Promise.all([1, 2, 3].map(async () => app.service.for({ ...gcra, onStoreError }).consume('user:1')));
    const local = await allowed('local');
    expect(local.map((each) => [each.allowed, each.source])).toEqual([
      [true, 'fallback'],
      [true, 'fallback'],
      [false, 'fallback'],
    ]);
    expect((await allowed('allow')).every((each) => each.allowed)).toBe(true);
    const denied = app.service.for({ ...gcra, onStoreError: 'deny' }).consume('user:1');
    await expect(denied).rejects.toBeInstanceOf(RateLimitStoreError);
    await app.close();
    // What was changed while apps run is read besides, and may want the same right.
    const ofChecks = logged.filter((line) => line.startsWith('the store failed'));
    expect(ofChecks).toEqual([expect.stringMatching(reason)]);
    expect(ofChecks[0]).toContain('docs/guides/redis-users.md');
  });

  it.each<[string, StoredOptions]>([
    ['+llen', limits['log']!],
    ['+lindex', limits['log']!],
    ['+zrevrange', limits['held']!],
    ['+zrangebyscore', limits['held']!],
  ])('to read, %s, leaves what is counted as it was', async (right, options) => {
    const app = await RatesApp.start({ redis: server.url, prefix: PREFIX });
    for (let count = 0; count < 5; count++) await app.service.for({ ...options, name: 'n' }).consume('user:1');
    await app.close();
    const [key] = (await admin.keys(`${PREFIX}:{user:1}:*`)) as [string];
    const before = await admin.dumpBuffer(key);
    const poor = await RatesApp.start({ redis: await userOf(without(right)), prefix: PREFIX });
    const denying = poor.service.for({ ...options, name: 'n', onStoreError: 'deny' });
    await expect(denying.consume('user:1')).rejects.toBeInstanceOf(RateLimitStoreError);
    await poor.close();
    expect(await admin.dumpBuffer(key)).toEqual(before);
  });

  it('of one algorithm leaves the others alone', async () => {
    const app = await RatesApp.start({ redis: await userOf(without('+zadd')), prefix: PREFIX });
    expect(await app.service.for(held).consume('user:1')).toMatchObject({ allowed: true, source: 'fallback' });
    expect(await app.service.for(gcra).consume('user:1')).toMatchObject({ allowed: true, source: 'redis' });
    await app.close();
  });
});

describe('on a Cluster', () => {
  let cluster: RedisCluster;

  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(async () => {
    await cluster?.stop();
  });

  it('the further rights of the guide are enough', async () => {
    for (const { url } of cluster.servers) {
      const node = new Redis(url);
      await node.call('ACL', 'SETUSER', 'app', ...documented, ...CLUSTER_RIGHTS);
      node.disconnect();
    }
    const options = { redisOptions: { username: 'app', password: 'password' } };
    const app = () => RatesApp.start({ redis: { nodes: cluster.nodes, options } });
    const [one, two] = [await app(), await app()];
    await one.service.setRate('login', { rate: 2 });
    await until(() => two.quota(), 2);
    expect(await one.service.for('login').consume('user:1')).toMatchObject({ source: 'redis' });
    await Promise.all([one.close(), two.close()]);
    expect(logged).toEqual([]);
  });
});
