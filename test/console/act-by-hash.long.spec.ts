import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { until } from '../support/time/until.js';
import { freshPrefix } from '../support/limits/stores.js';
import { ConsoleApp, type KeyChanged, type Problem, type TopKeys } from './console-app.js';

const REDIS = process.env['TEST_REDIS_URL'] as string;

describe('a key that is known by its hash', () => {
  let apps: ConsoleApp[];

  beforeAll(async () => {
    const limits = { redis: REDIS, prefix: freshPrefix() };
    apps = await Promise.all([0, 1].map(() => ConsoleApp.start({ limits, console: { topKeys: 'always' } })));
  });
  afterAll(() => Promise.all((apps ?? []).map((app) => app.close())));

  it('is blocked, though only another instance counted it and nobody sees its identity', async () => {
    const [one, other] = apps as [ConsoleApp, ConsoleApp];
    const limiter = other.service.for('things');
    for (let call = 0; call < 14; call++) await limiter.consume('anna');
    let id = '';
    await until(async () => {
      const { refused } = await one.read<TopKeys>('top?limit=things');
      id = refused[0]?.id ?? '';
      expect(JSON.stringify(refused)).not.toContain('anna');
      return id !== '';
    });
    const response = await one.post('keys/block', { limit: 'things', id, duration: '1h', reason: 'Too many' });
    const { state } = (await response.json()) as KeyChanged;
    expect(response.status).toBe(200);
    expect(state.blockedUntil).toEqual(expect.any(Number));
    expect(JSON.stringify(state)).not.toContain('anna');
    expect((await limiter.peek('anna')).allowed).toBe(false);

    const raised = await one.post('keys/override', {
      limit: 'things',
      id,
      patch: { rate: 20 },
      expiresIn: '10m',
      reason: 'Too many',
    });
    expect(raised.status).toBe(200);
    expect(await other.service.getRate('things', { key: 'anna' })).toMatchObject({ options: { rate: 20 } });
    await one.post('keys/unblock', { limit: 'things', id, reason: 'Calm again' });
    expect((await limiter.peek('anna')).allowed).toBe(true);
  });

  it('is refused if nobody counted it', async () => {
    const body = { limit: 'things', id: 'ffffffffffff', duration: '1h', reason: 'Too many' };
    const response = await apps[0]!.post('keys/block', body);
    expect(response.status).toBe(400);
    const { errors } = (await response.json()) as Problem;
    expect(errors).toEqual([{ field: 'id', message: expect.stringContaining('counted recently') }]);
  });
});
