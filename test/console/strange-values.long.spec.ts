import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Redis } from 'ioredis';
import type { CompiledLimit } from '../../lib/testing/store/index.js';
import { connectRedis, freshPrefix } from '../support/limits/stores.js';
import { type Changes, ConsoleApp, type ConsoleAppOptions, type Overview, type TopKeys } from './console-app.js';
import { hashOf } from '../support/limits/hashed.js';

const keysOf = async (app: ConsoleApp) => (await app.read<Changes>('changes')).changes.map(({ key }) => key);

describe('a console beside instances of another kind', () => {
  const url = process.env['TEST_REDIS_URL'] as string;
  const apps: ConsoleApp[] = [];
  let redis: Redis;

  const start = async (prefix: string, options: ConsoleAppOptions = {}) => {
    const app = await ConsoleApp.start({ limits: { redis: url, prefix }, ...options });
    apps.push(app);
    return app;
  };
  beforeAll(async () => {
    redis = await connectRedis();
  });
  afterAll(() => redis.quit());
  afterEach(async () => {
    jest.restoreAllMocks();
    await Promise.all(apps.splice(0).map((app) => app.close()));
  });

  it('shows what it can read, whatever they wrote', async () => {
    const prefix = freshPrefix();
    const app = await start(prefix);
    const key = (name: string) => `${prefix}:{console}:${name}`;
    for (const id of ['other-type', 'garbage', 'future']) await redis.zadd(key('seen'), Date.now(), id);
    for (const name of ['instance', 'counts-1', 'counts-15', 'counts-300', 'top']) {
      await redis.sadd(key(`${name}-other-type`), 'x');
      if (name.startsWith('counts')) await redis.hset(key(`${name}-garbage`), '1', '{');
      else await redis.set(key(`${name}-garbage`), '{');
    }
    const step = Math.floor(Date.now() / 1000) * 1000;
    await redis.hset(key('counts-1-future'), step, '{"v":2}', 'x', '[[["a"],1]]', step - 1000, '[[[{}, -1]], 7, 9]');
    await redis.set(key('top-future'), '[["things",0,[["id","7",0]],0,[["id",1,0,{}]],0]]');
    await redis.lpush(
      key('log'),
      '{',
      'null',
      '{"at":1e999,"action":"block","key":"x"}',
      '{"at":1,"action":"x","key":"x"}',
    );
    await app.service.for('things').consume('anna');
    await app.console.recorder.flush();
    const { totals, instances, problem } = await app.read<Overview>('overview');
    expect(problem).toBeUndefined();
    expect(totals['things']).toMatchObject({ allowed: 1 });
    expect(instances).toHaveLength(1);
    expect(await app.read<TopKeys>('top?limit=things')).toMatchObject({ refused: [], used: [] });
    expect((await app.read<Changes>('changes')).changes).toEqual([]);
  });

  it('forgets nobody by a clock of its own that is ahead', async () => {
    const prefix = freshPrefix();
    await redis.zadd(`${prefix}:{console}:seen`, Date.now() - 60_000, 'ended');
    const days = Date.now() + 3 * 86_400_000;
    jest.spyOn(Date, 'now').mockReturnValue(days);
    const app = await start(prefix);
    await app.console.recorder.flush();
    jest.restoreAllMocks();
    await app.console.recorder.flush();
    expect(await redis.zrange(`${prefix}:{console}:seen`, 0, '-1')).toEqual(['ended', app.console.recorder.self.id]);
  });

  it('reads a few of many at a time, so that requests have their turn', async () => {
    const prefix = freshPrefix();
    const app = await start(prefix);
    const step = Math.floor(Date.now() / 1000) * 1000;
    for (let id = 0; id < 30; id++) {
      await redis.zadd(`${prefix}:{console}:seen`, Date.now(), `i${id}`);
      await redis.hset(`${prefix}:{console}:counts-1-i${id}`, step, '[[["things",1,0,0,0,0]],[1,0,0,0],[]]');
    }
    const read = jest.spyOn(app.console.redis!, 'read');
    const { totals } = await app.overview();
    expect(totals['things']).toMatchObject({ allowed: 30 });
    // A step is a value: 300 of each instance in the last five minutes.
    const values = read.mock.calls.map(([commands]) => (commands.length / 2) * 300);
    expect(values.length).toBeGreaterThan(1);
    expect(Math.max(...values)).toBeLessThan(1500);
  });

  it('hashes what one that is to show identities wrote to the log', async () => {
    const prefix = freshPrefix();
    const plain = await start(prefix, { console: { identities: 'plain' } });
    const hashed = await start(prefix);
    await plain.change('keys/block', { limit: 'things', identity: 'anna@example.com', duration: '1m' });
    expect(await keysOf(plain)).toEqual(['anna@example.com']);
    expect(await keysOf(hashed)).toEqual([hashOf('anna@example.com')]);
  });
});

describe('the labels of limits', () => {
  let app: ConsoleApp;
  afterEach(() => app.close());

  it('stay those of declared limits, however many names functions give', async () => {
    app = await ConsoleApp.start();
    const { catalog } = app.console;
    const labelOf = (name: string, namespace = 'given') => catalog.labelOf({ name, namespace } as CompiledLimit);
    const before = catalog.entries().map(({ label }) => label);
    expect(labelOf('things')).toBe('things (given)');
    for (let name = 0; name < 11_000; name++) expect(labelOf(`name-${name}`)).toBe(`name-${name}`);
    expect(catalog.entries().map(({ label }) => label)).toEqual(before);
    // A name that was forgotten is free again.
    expect(labelOf('name-0', 'another')).toBe('name-0');
  });
});
