import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Cluster, type Redis } from 'ioredis';
import { type RedisCluster, type RedisServer, startCluster, startRedis } from '../support/redis/redis-servers.js';
import { connectRedis, freshPrefix } from '../support/limits/stores.js';
import { until } from '../support/time/until.js';
import {
  type Changes,
  ConsoleApp,
  type ConsoleAppOptions,
  type KeyChanged,
  type LimitTotals,
  type Overview,
  type TopKeys,
} from './console-app.js';
import { hashOf } from '../support/limits/hashed.js';

/** What was asked of the limit, as an instance shows it. */
const shown = async (app: ConsoleApp): Promise<number> => {
  const { totals } = await app.overview();
  const { allowed = 0, refused = 0 }: Partial<LimitTotals> = totals['things'] ?? {};
  return allowed + refused;
};

const consume = async (app: ConsoleApp, key: string, times: number) => {
  const limiter = app.service.for('things');
  await Promise.all(Array.from({ length: times }, () => limiter.consume(key)));
};

const ANNA = { limit: 'things', identity: 'anna' };

describe('several instances of a console on one Redis', () => {
  const url = process.env['TEST_REDIS_URL'] as string;
  const apps: ConsoleApp[] = [];
  let redis: Redis;

  const start = async (prefix: string, options: ConsoleAppOptions = {}) => {
    const app = await ConsoleApp.start({
      ...options,
      limits: { redis: url, prefix, ...options.limits },
    });
    apps.push(app);
    return app;
  };
  const threeOf = (prefix: string, options: ConsoleAppOptions = {}) =>
    Promise.all([start(prefix, options), start(prefix, { ...options, fastify: true }), start(prefix, options)]);
  beforeAll(async () => {
    redis = await connectRedis();
  });
  afterAll(() => redis.quit());
  afterEach(async () => {
    jest.restoreAllMocks();
    await Promise.all(apps.splice(0).map((app) => app.close()));
  });

  it('adds up to exactly what was asked, on each of them, in each range', async () => {
    const instances = await threeOf(freshPrefix());
    const asked = [137, 41, 260];
    await Promise.all(instances.map((app, index) => consume(app, `key-${index}`, asked[index]!)));
    await Promise.all(instances.map((app) => app.console.recorder.flush()));
    for (const app of instances) {
      for (const range of ['5m', '1h', '1d', '7d', '30d']) {
        const { totals, instances: seen, redis: info, problem } = await app.read<Overview>(`overview?range=${range}`);
        expect(totals['things']).toMatchObject({ allowed: 30, refused: 137 + 41 + 260 - 30 });
        expect(problem).toBeUndefined();
        expect(seen.map(({ circuit }) => circuit)).toEqual(['closed', 'closed', 'closed']);
        expect(seen.filter(({ self }) => self)).toHaveLength(1);
        expect(info).toMatchObject({
          up: true,
          mode: 'standalone',
          version: expect.stringMatching(/^(redis|valkey) \d/),
        });
        expect(info!.usedMemory).toBeGreaterThan(0);
      }
    }
  });

  it('keeps what instances counted that have ended', async () => {
    const prefix = freshPrefix();
    const first = await start(prefix);
    await consume(first, 'anna', 20);
    await first.close();
    apps.pop();
    const second = await start(prefix);
    await consume(second, 'bert', 5);
    await second.console.recorder.flush();
    const { totals } = await second.read<Overview>('overview');
    expect(totals['things']).toMatchObject({ allowed: 15, refused: 10 });
  });

  it('adds what ended instances counted to one sum, by itself', async () => {
    const prefix = freshPrefix();
    const key = (name: string) => `${prefix}:{console}:${name}`;
    const ended = Date.now() - 60_000;
    const step = Math.floor(ended / 300_000) * 300_000;
    for (let instance = 0; instance < 4; instance++) {
      await redis.zadd(key('endings'), ended + instance, `ended-${instance}`);
      await redis.hset(key(`counts-300-ended-${instance}`), step, '[[["things",1,2]],[3,0,0,0],[]]');
    }
    const app = await start(prefix);
    const { totals, coverage } = await app.overview('1d');
    expect([totals['things'], coverage.ended]).toEqual([expect.objectContaining({ allowed: 4, refused: 8 }), 4]);
    // As if Redis had answered for a while.
    const { reporter } = app.console.recorder as unknown as { reporter: { healthySince: number } };
    await until(async () => {
      reporter.healthySince = -1e9;
      return (await redis.zcard(key('endings'))) === 0;
    });
    const after = await app.overview('1d');
    expect([after.totals['things'], after.coverage.ended]).toEqual([totals['things'], 0]);
    expect(await redis.keys(key('counts-300-*'))).toEqual([key('counts-300-ended')]);
  });

  it('writes keys that run out, but for the log', async () => {
    const prefix = freshPrefix();
    const app = await start(prefix);
    await consume(app, 'anna', 3);
    await app.read<TopKeys>('top?limit=things');
    await app.console.recorder.flush();
    await consume(app, 'anna', 3);
    await app.console.recorder.flush();
    await app.change('keys/block', { limit: 'things', identity: 'anna', duration: '1m' });
    await app.console.recorder.flush();
    const keys = (await redis.keys(`${prefix}:{console}:*`)).toSorted();
    const { id } = app.console.recorder.self;
    const limits = String((await redis.zrange(`${prefix}:{console}:limit-sets`, '0', '-1'))[0]);
    const expiring = [
      `about-${id}`,
      'blocks',
      `counts-1-${id}`,
      `counts-15-${id}`,
      `counts-300-${id}`,
      `counts-3600-${id}`,
      `counts-10800-${id}`,
      `instance-${id}`,
      'limit-sets',
      `limits-${limits}`,
      'noted',
      'reports',
      'seen',
      `top-${id}`,
      'watched',
    ];
    expect(keys).toEqual([...expiring, 'log'].map((name) => `${prefix}:{console}:${name}`).toSorted());
    for (const name of expiring) expect(await redis.ttl(`${prefix}:{console}:${name}`)).toBeGreaterThan(0);
    expect(await redis.ttl(`${prefix}:{console}:log`)).toBe(-1);
    expect(JSON.stringify(await redis.lrange(`${prefix}:{console}:log`, 0, -1))).not.toContain('anna');
  });

  it('finds the keys that all instances refused, and once somebody looks, those that use most', async () => {
    const [first, second] = await threeOf(freshPrefix());
    await consume(first, 'before', 100);
    await first.console.recorder.flush();
    expect(await second.read<TopKeys>('top?limit=things')).toMatchObject({
      refused: [{ id: hashOf('before'), count: 90, error: 0 }],
      used: [],
    });
    // It finds out that somebody looks.
    await first.console.recorder.flush();
    await consume(first, 'anna', 30);
    await consume(second, 'anna', 10);
    await consume(second, 'bert', 15);
    await Promise.all([first, second].map((app) => app.console.recorder.flush()));
    const { refused, used, since, usedSince, at, coverage } = await second.read<TopKeys>('top?limit=things');
    expect(refused).toEqual([
      { id: hashOf('before'), count: 90, error: 0 },
      { id: hashOf('anna'), count: 30, error: 0 },
      { id: hashOf('bert'), count: 5, error: 0 },
    ]);
    expect(used).toEqual(
      expect.arrayContaining([
        { id: hashOf('anna'), count: 10, error: 0 },
        { id: hashOf('bert'), count: 10, error: 0 },
      ]),
    );
    expect(since).toBeLessThanOrEqual(usedSince!);
    expect(usedSince).toBeLessThanOrEqual(at);
    expect(coverage).toMatchObject({ instances: expect.arrayContaining([first.console.recorder.self.id]), unread: [] });
  });

  it('counts keys from the start, and names them, if it is to', async () => {
    const app = await start(freshPrefix(), { console: { topKeys: 'always', identities: 'plain' } });
    await consume(app, '<img onerror=x>', 12);
    const { refused } = await app.read<TopKeys>('top?limit=things');
    expect(refused).toEqual([{ id: hashOf('<img onerror=x>'), identity: '<img onerror=x>', count: 2, error: 0 }]);
  });

  it('does not hide a change that could not be logged', async () => {
    const prefix = freshPrefix();
    const app = await start(prefix);
    await redis.set(`${prefix}:{console}:log`, 'no list');
    const { warning } = await app.change<KeyChanged>('keys/block', { ...ANNA, duration: '1h' });
    expect(warning).toMatch(/^the change is done, but could not be written to the log: .*WRONGTYPE/);
    expect((await app.service.for('things').peek('anna')).allowed).toBe(false);
    const { changes, problem } = await app.read<Changes>('changes');
    expect([changes, problem]).toEqual([[], expect.stringContaining('WRONGTYPE')]);
  });

  it('needs no other rights than the guide names', async () => {
    const prefix = freshPrefix();
    const name = `user-${prefix}`;
    const guide = readFileSync('docs/guides/redis-users.md', 'utf8');
    const [, own] = /^(\+zrange .*)$/m.exec(guide)!;
    const [, all] = /ACL SETUSER \S+ ([^`]+)/.exec(guide)!;
    const rights = `${all} ${own}`.split(/\s+/).filter((right) => right.startsWith('+'));
    const channels = [`&${prefix}:rates`, `&${prefix}:given-back`];
    await redis.call('ACL', 'SETUSER', name, 'reset', 'on', '>secret', `~${prefix}:*`, ...channels, ...rights);
    const { hostname, port } = new URL(url);
    const app = await start(prefix, { limits: { redis: `redis://${name}:secret@${hostname}:${port}` } });
    await consume(app, 'anna', 3);
    await app.read<TopKeys>('top?limit=things');
    await app.console.recorder.flush();
    await app.change('keys/block', { ...ANNA, duration: '1h' });
    const { problem, redis: info } = await app.read<Overview>('overview');
    expect(problem).toBeUndefined();
    expect(info).toMatchObject({ up: true, ourKeysBytes: expect.any(Number) });
    expect((await app.console.overviews.tick()).problem).toBeUndefined();
    expect((await app.console.incidents.now()).problem).toBeUndefined();
    const ended = Date.now() - 60_000;
    await redis.zadd(`${prefix}:{console}:endings`, ended, 'one that ended');
    await redis.hset(
      `${prefix}:{console}:counts-300-one that ended`,
      Math.floor(ended / 300_000) * 300_000,
      '[[],[],[]]',
    );
    expect(await app.fold()).toBe(1);
    expect((await app.read<Changes>('changes')).problem).toBeUndefined();
    expect(JSON.stringify(await redis.call('ACL', 'LOG'))).not.toContain(name);
    await app.close();
    apps.pop();
    await redis.call('ACL', 'DELUSER', name);
  });

  it('says what a user of Redis may not do', async () => {
    const prefix = freshPrefix();
    const name = `user-${prefix}`;
    await redis.call(
      'ACL',
      'SETUSER',
      name,
      'reset',
      'on',
      '>secret',
      `~${prefix}:*`,
      '&*',
      '+@all',
      '-zadd',
      '-dbsize',
    );
    const { hostname, port } = new URL(url);
    const limits = { redis: `redis://${name}:secret@${hostname}:${port}` };
    const app = await start(prefix, { limits });
    await consume(app, 'anna', 3);
    await app.console.recorder.flush();
    const { totals, problem, redis: info } = await app.read<Overview>('overview');
    expect(totals['things']).toMatchObject({ allowed: 3 });
    expect(problem).toMatch(/^this instance cannot store its counts, so the others do not show it: .*NOPERM/);
    expect(info).toMatchObject({ up: false, ourKeysBytes: null });
    await app.close();
    apps.pop();
    await redis.call('ACL', 'DELUSER', name);
  });

  it('shares the log of changes', async () => {
    const [first, second] = await threeOf(freshPrefix(), { console: { actor: () => 'ops@example.com' } });
    await first.change('keys/block', { limit: 'things', identity: 'anna', duration: '1h', reason: 'abuse' });
    await second.change('rates/set', { limit: 'things', patch: { rate: 20 }, reason: 'launch' });
    const { changes } = await second.read<Changes>('changes?limit=things');
    expect(changes).toEqual([
      expect.objectContaining({
        action: 'rate',
        by: 'ops@example.com',
        reason: 'launch',
        after: 'rate: 20',
        version: 1,
      }),
      expect.objectContaining({
        action: 'block',
        by: 'ops@example.com',
        reason: 'abuse',
        after: '1h',
        key: hashOf('anna'),
      }),
    ]);
    const decision = await second.service.for('things').consume('anna');
    expect(decision.allowed).toBe(false);
  });
});

/** It may be connecting, or waiting to connect again. */
const reason = (text = '') => text.replace('reconnecting', 'connecting');

describe('a console whose Redis goes away', () => {
  let server: RedisServer;
  let app: ConsoleApp;

  beforeAll(async () => {
    jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    server = await startRedis();
    app = await ConsoleApp.start({ limits: { redis: server.url, timeout: '500ms' } });
  });
  afterAll(async () => {
    await app.close();
    await server.stop();
    jest.restoreAllMocks();
  });

  it('says so, counts on, and comes back by itself with all that it counted', async () => {
    const limiter = app.service.for('things');
    for (let call = 0; call < 7; call++) await limiter.consume('anna');
    await until(async () => (await shown(app)) === 7);
    await server.kill();
    await until(async () => (await app.overview()).problem !== undefined);
    for (let call = 0; call < 5; call++) await limiter.consume('anna');
    await until(async () => (await shown(app)) === 12);
    const during = await app.read<Overview>('overview');
    expect(during.redis).toMatchObject({ up: false });
    expect(during.problem).toMatch(/^Redis does not answer, so only this instance is shown: /);
    const { incidents, problem, coverage } = await app.console.incidents.now();
    expect(incidents).toEqual(expect.arrayContaining([expect.objectContaining({ kind: 'fallback' })]));
    expect([reason(problem), coverage.instances]).toEqual([reason(during.problem), [app.console.recorder.self.id]]);
    expect(during.series.store.fallback.reduce((total, count) => total + count)).toBeGreaterThan(0);
    const refused = await app.post('keys/block', { limit: 'things', identity: 'anna', duration: '1h', reason: 'x' });
    expect([refused.status, refused.headers.get('content-type')]).toEqual([
      503,
      expect.stringContaining('problem+json'),
    ]);
    await server.start();
    await until(async () => (await app.overview()).problem === undefined);
    await until(async () => (await app.overview()).redis!.up);
    // Another instance sees all that this one has counted, though the server had lost it.
    const other = await ConsoleApp.start({ limits: { redis: server.url, timeout: '500ms' } });
    await until(async () => (await shown(other)) === 12);
    await other.close();
  });
});

describe('a console on a Cluster', () => {
  let cluster: RedisCluster;

  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster.stop());

  it('keeps all it has in one slot, and knows of all nodes', async () => {
    const prefix = freshPrefix();
    const client = new Cluster(cluster.nodes, { redisOptions: { autoResendUnfulfilledCommands: false } });
    const start = () => ConsoleApp.start({ limits: { redis: client, prefix } });
    const apps = await Promise.all([start(), start()]);
    const [first, second] = apps;
    for (const key of ['anna', 'bert', 'carl', 'dora']) await first.service.for('things').consume(key);
    await first.console.recorder.flush();
    await second.console.recorder.flush();
    const overview = await second.read<Overview>('overview');
    expect(overview.totals['things']).toMatchObject({ allowed: 4 });
    expect(overview.instances).toHaveLength(2);
    expect(overview.redis).toMatchObject({ up: true, mode: 'cluster' });
    expect(overview.redis!.ourKeysBytes).toBeGreaterThan(0);
    // What one that ended counted, a little later.
    await first.close();
    expect(await second.fold(60_000)).toBe(1);
    for (const range of ['5m', '1h', '1d', '7d', '30d'] as const) {
      const { totals, coverage } = await second.overview(range);
      expect([totals['things']!.allowed, coverage.ended]).toEqual([4, 0]);
    }
    await second.close();
    client.disconnect();
  });
});
