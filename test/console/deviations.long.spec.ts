import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Cluster, type Redis } from 'ioredis';
import { type RedisCluster, startCluster } from '../support/redis/redis-servers.js';
import { connectRedis, freshPrefix } from '../support/limits/stores.js';
import {
  type BlockDeviation,
  type Changed,
  ConsoleApp,
  type ConsoleAppOptions,
  type DeviationKind,
  type Deviations,
  type LeaseDeviation,
  THINGS,
} from './console-app.js';
import { hashOf } from '../support/limits/hashed.js';

const REDIS = process.env['TEST_REDIS_URL'] as string;
const DEFINE = {
  things: THINGS,
  login: { algo: 'sliding-log', rate: 2, interval: '1h', key: 'user', blockFor: '30m' },
  slots: { algo: 'concurrency', limit: 3, ttl: '1m', key: 'user' },
} as const;
const PLAIN: ConsoleAppOptions = { console: { identities: 'plain', actor: () => 'ada@example.com' } };

const ask = async (app: ConsoleApp, kind: DeviationKind, more: object = {}): Promise<Deviations> => {
  const response = await app.post('deviations', { kind, ...more }, { 'x-user': 'ops' });
  if (response.status !== 200) throw new Error(await response.text());
  return (await response.json()) as Deviations;
};

describe('what deviates', () => {
  const apps: ConsoleApp[] = [];
  let prefix: string;
  let redis: Redis;

  beforeAll(async () => {
    redis = await connectRedis();
  });
  afterAll(() => redis.quit());
  beforeEach(() => {
    prefix = freshPrefix();
  });
  afterEach(() => Promise.all(apps.splice(0).map((app) => app.close())));

  const start = async (options: ConsoleAppOptions = PLAIN) => {
    const limits = { define: DEFINE, redis: REDIS, prefix, ...options.limits } as const;
    const app = await ConsoleApp.start({ ...options, limits });
    apps.push(app);
    return app;
  };
  const flushed = () => Promise.all(apps.map((app) => app.console.recorder.flush()));

  it('is each block that holds, whichever instance saw it, with who and why where that is known', async () => {
    const [one, other] = [await start(), await start()];
    await one.change('keys/block', { limit: 'things', identity: 'anna', duration: '2h', reason: 'Guesses' });
    await other.service.for('things').block('bert', '1h');
    for (let call = 0; call < 4; call++) await other.service.for('login').consume('user:7');
    await one.service.for('things').block('carl', '1h');
    await one.service.for('things').unblock('carl');
    await one.service.for('things').block('dora', '1h');
    await flushed();
    // No note is made of this.
    await one.service.for('things').reset('dora');
    const { entries, since, isCut, unread, next } = await ask(other, 'blocks');
    const until = expect.any(Number);
    expect(entries).toEqual([
      {
        kind: 'blocks',
        id: hashOf('anna'),
        key: 'anna',
        limit: 'things',
        origin: 'console',
        expiresAt: until,
        by: 'ada@example.com',
        reason: 'Guesses',
      },
      { kind: 'blocks', id: hashOf('bert'), key: 'bert', limit: 'things', origin: 'code', expiresAt: until },
      { kind: 'blocks', id: hashOf('user:7'), key: 'user:7', limit: 'login', origin: 'limit', expiresAt: until },
    ]);
    const left = (entries as BlockDeviation[]).map(({ expiresAt }) => (expiresAt! - Date.now()) / 60_000);
    expect(left.map(Math.ceil)).toEqual([120, 60, 30]);
    expect(since).toBeLessThanOrEqual(Date.now());
    expect([isCut, unread, next]).toEqual([false, 0, undefined]);
    // What holds no longer is forgotten.
    expect(await redis.zcard(`${prefix}:{console}:blocks`)).toBe(3);
    expect(await redis.ttl(`${prefix}:{console}:blocks`)).toBeGreaterThan(0);
  });

  it('is found by limit and by text, and the blocks end by their hash', async () => {
    const app = await start({});
    await app.service.for('things').block('anna', '2h');
    await app.service.for('login').block('user:8', '1h');
    await flushed();
    expect((await ask(app, 'blocks', { limit: 'login' })).entries).toMatchObject([{ key: hashOf('user:8') }]);
    expect((await ask(app, 'blocks', { find: 'anna' })).entries).toMatchObject([{ key: hashOf('anna') }]);
    expect((await ask(app, 'blocks', { find: 'ann' })).entries).toEqual([]);
    // An account whose address is not known.
    const key = 'ann@x.com|203.0.113.7';
    await app.service.for('things').block(key, '3h');
    await flushed();
    for (const find of ['ann@x.com', '203.0.113.7', key]) {
      expect((await ask(app, 'blocks', { find })).entries).toMatchObject([{ key: hashOf(key) }]);
    }
    for (const find of ['ann@x', 'nn@x.com', '203.0', '|203.0.113.7|']) {
      expect((await ask(app, 'blocks', { find })).entries).toEqual([]);
    }
    await app.change('keys/unblock', { limit: 'things', id: hashOf(key) });
    const { entries } = await ask(app, 'blocks');
    expect(JSON.stringify(entries)).not.toContain('anna');
    await app.change('keys/unblock', { limit: 'things', id: hashOf('anna') });
    expect((await app.service.for('things').peek('anna')).allowed).toBe(true);
    expect((await ask(app, 'blocks')).entries).toMatchObject([{ limit: 'login' }]);
  });

  it('is shown in pages of a bounded size', async () => {
    const app = await start();
    const limiter = app.service.for('things');
    await Promise.all(Array.from({ length: 70 }, (_, index) => limiter.block(`key-${index}`, '1h')));
    await flushed();
    const first = await ask(app, 'blocks');
    const second = await ask(app, 'blocks', { cursor: first.next });
    expect([first.entries.length, second.entries.length, second.next]).toEqual([50, 20, undefined]);
    expect(new Set([...first.entries, ...second.entries].map(({ key }) => key)).size).toBe(70);
  });

  it('is each override of a rate or mode, and each ends', async () => {
    const app = await start();
    await app.service.setRate('things', { rate: 50 }, { key: 'tenant:*', by: 'bo', reason: 'Trial', expiresIn: '1h' });
    await app.service.setMode('things', 'off', { key: 'anna' });
    await app.service.setMode('login', 'shadow');
    const { entries } = await ask(app, 'overrides');
    expect(entries).toEqual([
      expect.objectContaining({ of: 'mode', limit: 'things', key: 'anna', value: 'off', expiresAt: null }),
      expect.objectContaining({ of: 'rate', key: 'tenant:*', value: 'rate: 50', by: 'bo', reason: 'Trial' }),
      expect.objectContaining({ of: 'mode', limit: 'login', key: null, value: 'shadow' }),
    ]);
    for (const entry of entries) {
      const { of, id, limit } = entry as (typeof entries)[0] & { of: string };
      expect(await app.change<Changed>('deviations/clear', { of, id, limit })).toMatchObject({ changed: true });
    }
    expect((await ask(app, 'overrides')).entries).toEqual([]);
    const again = { of: 'mode', id: hashOf('anna'), limit: 'things' };
    expect(await app.change<Changed>('deviations/clear', again)).toEqual({ changed: false });
  });

  it('is each entry of a list', async () => {
    const app = await start();
    await app.service.deny({ identity: 'anna' }, { by: 'bo', reason: 'Fraud' });
    await app.service.allow({ ip: '10.0.0.0/8' }, { limit: 'things' });
    expect((await ask(app, 'lists', { find: 'fraud' })).entries).toMatchObject([
      { key: 'anna', limit: null, by: 'bo', reason: 'Fraud', item: { list: 'deny', removable: true } },
    ]);
    // What holds for all limits holds for this one.
    expect((await ask(app, 'lists', { limit: 'things' })).entries).toHaveLength(2);
    expect((await ask(app, 'lists', { limit: 'login' })).entries).toHaveLength(1);
  });

  it('is each key that holds units, until they are released', async () => {
    const [one, other] = [await start(), await start()];
    const { lease } = await one.service.for('slots').consume('user:7', 2);
    await one.service.for('slots').consume('user:8');
    await flushed();
    const { entries } = await ask(other, 'leases');
    const held = (entries as LeaseDeviation[]).map((each) => [each.key, each.held, each.quota, each.limit]);
    expect(held.toSorted(([one], [other]) => String(one).localeCompare(String(other)))).toEqual([
      ['user:7', 2, 3, 'slots'],
      ['user:8', 1, 3, 'slots'],
    ]);
    await lease!.release();
    await other.change('keys/reset', { limit: 'slots', id: hashOf('user:8') });
    expect((await ask(other, 'leases')).entries).toEqual([]);
  });

  it('is kept in process without Redis', async () => {
    const app = await ConsoleApp.start({ ...PLAIN, limits: { define: DEFINE } });
    apps.push(app);
    await app.service.for('things').block('anna', '1h');
    expect((await ask(app, 'blocks')).entries).toMatchObject([{ key: 'anna', origin: 'code' }]);
    await app.service.for('things').unblock('anna');
    expect((await ask(app, 'blocks')).entries).toEqual([]);
  });

  it('is refused to be read by a wrong request', async () => {
    const app = await start();
    for (const body of [{ kind: 'all' }, { kind: 'blocks', cursor: '-1' }, { kind: 'blocks', limit: 'nothing' }]) {
      expect((await app.post('deviations', body)).status).toBe(400);
    }
    expect(
      (await app.post('deviations/clear', { of: 'rate', limit: 'things', id: 'x', reason: 'y' }, { 'x-user': 'ops' }))
        .status,
    ).toBe(403);
  });

  it('is bounded: what there is no room for is said', async () => {
    const app = await start();
    const limiter = app.service.for('things');
    for (let at = 0; at < 1010; at++) await limiter.block(`key-${at}`, 3_600_000 + at * 1000);
    for (let flush = 0; flush < 8; flush++) await flushed();
    expect(await redis.zcard(`${prefix}:{console}:blocks`)).toBe(1000);
    expect((await ask(app, 'blocks')).isCut).toBe(true);
  });
});

describe('what deviates on a Redis Cluster', () => {
  let servers: RedisCluster;
  let app: ConsoleApp;
  let client: Cluster;

  beforeAll(async () => {
    servers = await startCluster();
    client = new Cluster(servers.nodes, { redisOptions: { autoResendUnfulfilledCommands: false } });
    app = await ConsoleApp.start({
      ...PLAIN,
      limits: { define: DEFINE, redis: client, prefix: freshPrefix() },
    });
  });
  afterAll(async () => {
    await app?.close();
    await client?.quit();
    await servers?.stop();
  });

  it('is noted in one slot', async () => {
    await app.service.for('things').block('anna', '1h');
    await app.service.for('slots').consume('user:7');
    await app.console.recorder.flush();
    expect(app.console.redis!.client).toBeInstanceOf(Cluster);
    expect((await ask(app, 'blocks')).entries).toMatchObject([{ key: 'anna' }]);
    expect((await ask(app, 'leases')).entries).toMatchObject([{ key: 'user:7', held: 1 }]);
  });
});
