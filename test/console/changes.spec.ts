import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type Changed,
  type Changes,
  ConsoleApp,
  type KeyChanged,
  type ListItems,
  type Lookup,
  type Problem,
  type RateInfo,
  type Rates,
  THINGS,
} from './console-app.js';
import { hashOf } from '../support/limits/hashed.js';

const REASON = { reason: 'a test' };

describe.each([
  ['Express', false],
  ['Fastify', true],
])('changes by the console on %s', (_, fastify) => {
  let app: ConsoleApp;
  let identity = 0;
  let key: string;

  beforeAll(async () => {
    app = await ConsoleApp.start({
      fastify,
      console: { actor: () => Promise.resolve('ops@example.com') },
      limits: {
        define: {
          things: THINGS,
          calls: { algo: 'concurrency', limit: 2, ttl: '1m' },
          daily: { algo: 'calendar-window', rate: 5, period: 'day', key: 'ip' },
        },
        limits: [{ name: 'routes', algo: 'gcra', rate: 1000, interval: '1s', perRoute: true }],
        lists: { deny: [{ ip: '198.51.100.0/24', reason: 'configured' }] },
      },
    });
  });
  afterAll(() => app.close());
  beforeEach(() => {
    key = `user:${++identity}`;
  });

  const limiter = () => app.service.for('things');
  const ofKey = (path: string, body: object = {}) =>
    app.change<KeyChanged>(`keys/${path}`, { limit: 'things', identity: key, ...body });
  const refusedFields = async (path: string, body: object) => {
    const response = await app.post(path, body);
    const problem = (await response.json()) as Problem;
    expect([response.status, problem.title]).toEqual([400, 'Bad Request']);
    expect(problem.detail).not.toBe('');
    return Object.fromEntries(problem.errors!.map(({ field, message }) => [field, message]));
  };
  const rate = async (limit = 'things'): Promise<RateInfo> =>
    (await app.read<Rates>('rates')).rates.find((each) => each.limit === limit)!;

  it('block a key and let it go', async () => {
    const { state } = await ofKey('block', { duration: '1h' });
    expect(state.blockedUntil! - Date.now()).toBeGreaterThan(3_500_000);
    expect(state.explanation).toContain('blocked for');
    expect((await limiter().consume(key)).allowed).toBe(false);
    expect((await ofKey('unblock')).state.blockedUntil).toBeNull();
    expect((await limiter().consume(key)).allowed).toBe(true);
  });

  it('give units back, take some, and reset', async () => {
    await limiter().consume(key, 6);
    expect((await ofKey('refund', { units: 4 })).state).toMatchObject({ used: 2, remaining: 8 });
    expect((await ofKey('penalize', { units: 5 })).state).toMatchObject({ used: 7, remaining: 3 });
    expect((await ofKey('reset')).state).toMatchObject({ used: 0, remaining: 10 });
  });

  it('override the rate of a key', async () => {
    const { state } = await ofKey('override', { patch: { rate: 50, burst: 50 }, expiresIn: '1h' });
    expect(state).toMatchObject({ quota: 50, rateSource: 'key', override: { patch: { rate: 50, burst: 50 } } });
    expect(state.override!.expiresAt).toBeGreaterThan(Date.now());
    expect((await limiter().peek(key)).quota).toBe(50);
    const cleared = await ofKey('clear-override');
    expect([cleared.state.quota, cleared.warning]).toEqual([10, undefined]);
    expect((await ofKey('clear-override')).warning).toBe('this key has no override, so nothing was changed');
  });

  it('stand in the log with who and why, and no identity', async () => {
    await ofKey('block', { duration: 60_000, reason: 'too eager' });
    await ofKey('override', { patch: { rate: 3 }, reason: 'slower' });
    const { changes } = await app.read<Changes>('changes?limit=things');
    const id = hashOf(key);
    expect(changes.filter((change) => change.key === id)).toEqual([
      expect.objectContaining({ action: 'rate', by: 'ops@example.com', reason: 'slower', after: 'rate: 3' }),
      expect.objectContaining({
        action: 'block',
        by: 'ops@example.com',
        reason: 'too eager',
        after: '60000 ms',
        version: null,
      }),
    ]);
    expect(JSON.stringify(changes)).not.toContain(key);
  });

  it('put somebody on a list, and take him off by what the page knows of him', async () => {
    await app.change('lists', { list: 'deny', identity: key, limit: 'things', expiresIn: '1h' });
    await app.change('lists', { list: 'allow', identity: 'staff:*' });
    await app.change('lists', { list: 'deny', ip: '203.0.113.7' });
    expect((await limiter().consume(key)).allowed).toBe(false);
    const { entries } = await app.read<ListItems>('lists');
    const shown = entries.map(({ list, kind, entry, limit, removable }) => [list, kind, entry, limit, removable]);
    expect(shown).toEqual([
      ['deny', 'ip', '198.51.100.0/24', null, false],
      ['deny', 'ip', hashOf('ip:203.0.113.7'), null, true],
      ['allow', 'pattern', 'staff:*', null, true],
      ['deny', 'identity', hashOf(key), 'things', true],
    ]);
    const found = (await (await app.post('lookup', { identity: key })).json()) as Lookup;
    expect(found.limits.find(({ limit }) => limit === 'things')!.listed).toMatchObject({
      list: 'deny',
      entry: hashOf(key),
    });
    for (const { id, removable } of entries) {
      expect(await app.change<Changed>('lists/remove', { id })).toMatchObject({ changed: removable });
    }
    expect((await limiter().consume(key)).allowed).toBe(true);
    expect(await app.change<Changed>('lists/remove', { identity: key, limit: 'things' })).toEqual({ changed: false });
  });

  it('change the rate and the mode of a limit, and go back', async () => {
    const { version } = await app.read<Rates>('rates');
    await app.change('rates/set', { limit: 'things', patch: { rate: 20 }, expiresIn: '1h' });
    await app.change('modes/set', { limit: 'things', mode: 'shadow' });
    expect(await rate()).toMatchObject({
      configured: { rate: 'gcra:10/1h', mode: 'enforce' },
      current: { rate: 'gcra:20/1h', source: 'limit', override: { by: 'ops@example.com', patch: { rate: 20 } } },
      mode: { mode: 'shadow', source: 'limit' },
    });
    expect(await app.change<Changed>('modes/clear', { limit: 'things' })).toMatchObject({
      changed: true,
      before: 'shadow',
      after: 'enforce',
    });
    expect(await app.change<Changed>('modes/clear', { limit: 'things' })).toEqual({ changed: false });
    expect(await app.change<Changed>('rollback', { version })).toEqual({ changed: true });
    expect(await rate()).toMatchObject({ current: { rate: 'gcra:10/1h', source: 'configured' } });
    const { changes } = await app.read<Changes>('changes');
    expect(changes[0]).toMatchObject({ action: 'rollback', rollbackTo: version });
  });

  it('preview a rate, and enforce it', async () => {
    await limiter().consume(key);
    await app.change('candidates/set', { limit: 'things', patch: { rate: 2, burst: 2 } });
    for (let call = 0; call < 5; call++) await limiter().consume(key);
    app.console.recorder.fold();
    const { candidate } = await rate();
    expect(candidate).toMatchObject({ rate: 'gcra:2/1h' });
    expect(candidate!.lastHour.candidateRefused).toBe(3);
    // Not what was decided before the candidate was there.
    expect(candidate!.lastHour.candidateAsked).toBe(5);
    expect(candidate!.lastHour.decisions).toBeGreaterThan(5);
    await app.change('candidates/enforce', { limit: 'things' });
    expect(await rate()).toMatchObject({ current: { rate: 'gcra:2/1h' }, candidate: null });
    await app.change('rates/clear', { limit: 'things' });
    await app.change('candidates/set', { limit: 'things', patch: { rate: 2 } });
    expect(await app.change<Changed>('candidates/clear', { limit: 'things' })).toMatchObject({ changed: true });
    expect(await app.change<Changed>('candidates/clear', { limit: 'things' })).toMatchObject({ changed: false });
    expect(await rate()).toMatchObject({ current: { rate: 'gcra:10/1h', source: 'configured' }, candidate: null });
    expect(await refusedFields('candidates/enforce', { limit: 'things', ...REASON })).toEqual({
      limit: 'this limit has no candidate. Choose a limit with one',
    });
  });

  it('looks addresses up as limits count them, with their past', async () => {
    await app.service.for('daily').consume('ip:2001:db8:1:2::');
    const found = (await (await app.post('lookup', { identity: 'ip:2001:db8:1:2::7' })).json()) as Lookup;
    expect(found.id).toBe(hashOf('ip:2001:db8:1:2::'));
    const daily = found.limits.find(({ limit }) => limit === 'daily')!;
    expect(daily).toMatchObject({ used: 1, remaining: 4, source: 'memory', history: [{ used: 1 }] });
    expect(found.limits.map(({ limit }) => limit)).not.toContain('routes');
  });

  it.each([
    ['keys/block', {}, ['reason', 'identity', 'limit', 'duration']],
    ['keys/block', { limit: 'nothing', identity: 'x', duration: '1h', ...REASON }, ['limit']],
    ['keys/block', { limit: 'routes', identity: 'x', duration: '1h', ...REASON }, ['limit']],
    ['keys/block', { limit: 'things', identity: 'x', duration: '2y', ...REASON }, ['duration']],
    ['keys/block', { limit: 'things', identity: 'x', duration: 0, ...REASON }, ['duration']],
    ['keys/block', { limit: 'things', identity: 7, duration: '1h', ...REASON }, ['identity']],
    ['keys/block', { limit: 'things', identity: 'x'.repeat(2000), duration: '1h', ...REASON }, ['identity']],
    ['keys/block', { limit: 'things', identity: 'x', duration: '1h', reason: ' ' }, ['reason']],
    ['keys/block', { limit: 'things', identity: 'x', duration: '1h', reason: 'x'.repeat(201) }, ['reason']],
    ['keys/block', { limit: 'things', identity: 'x', duration: '1h', until: 'x', ...REASON }, ['until']],
    ['keys/refund', { limit: 'things', identity: 'x', units: 1.5, ...REASON }, ['units']],
    ['keys/refund', { limit: 'calls', identity: 'x', units: 1, ...REASON }, ['limit']],
    ['keys/penalize', { limit: 'things', identity: 'x', units: '3', ...REASON }, ['units']],
    ['keys/override', { limit: 'things', identity: 'x', patch: { rate: -1 }, ...REASON }, ['patch.rate']],
    ['keys/override', { limit: 'things', identity: 'x', patch: {}, ...REASON }, ['patch']],
    ['keys/override', { limit: 'things', identity: 'x', patch: [1], ...REASON }, ['patch']],
    ['rates/set', { limit: 'things', patch: { constructor: 1 }, ...REASON }, ['patch.constructor']],
    ['keys/override', { limit: 'things', identity: 'a*b', patch: { rate: 1 }, ...REASON }, ['identity']],
    ['rates/set', { limit: 'things', patch: { rate: 'many' }, ...REASON }, ['patch.rate']],
    ['rates/set', { limit: 'things', patch: { slices: 4 }, ...REASON }, ['patch.slices']],
    ['rates/set', { limit: 'things', patch: { rate: 5 }, expiresIn: 'soon', ...REASON }, ['expiresIn']],
    ['rates/set', { limit: 'sliding-window:3/1h:byHeader', patch: { rate: 5 }, ...REASON }, ['limit']],
    ['candidates/set', { limit: 'things', patch: { rate: 0 }, ...REASON }, ['patch.rate']],
    ['modes/set', { limit: 'things', mode: 'on', ...REASON }, ['mode']],
    ['lists', { list: 'grey', identity: 'x', ...REASON }, ['list']],
    ['lists', { list: 'deny', ...REASON }, ['identity']],
    ['lists', { list: 'deny', identity: '10.0.0.0/99', ...REASON }, ['identity']],
    ['lists', { list: 'deny', identity: 'x', ip: '203.0.113.7', ...REASON }, ['identity']],
    ['lists', { list: 'deny', ip: '203.0.113.7/8', ...REASON }, ['ip']],
    ['lists', { list: 'deny', identity: 'x', limit: 'nothing', ...REASON }, ['limit']],
    ['rollback', { version: 1000, ...REASON }, ['version']],
    ['rollback', { version: -1, ...REASON }, ['version']],
    ['lookup', {}, ['identity']],
  ])('refuses %s of %j, and changes nothing', async (path, body, fields) => {
    const before = await app.read<Changes>('changes');
    expect(Object.keys(await refusedFields(path, body)).toSorted()).toEqual(fields.toSorted());
    expect(await app.read<Changes>('changes')).toEqual(before);
  });

  it('names what a field is, and what it wants', async () => {
    expect(await refusedFields('rates/set', { limit: 'things', patch: { rate: -1 }, ...REASON })).toEqual({
      'patch.rate': 'expected a whole number >= 1, received -1',
    });
  });

  it('refuses parameters that it does not know', async () => {
    for (const read of [
      'overview?range=1y',
      'overview?from=1',
      'live?top=2',
      'live?top=1',
      'top',
      'top?limit=x',
      'lists?cursor=x',
    ]) {
      const response = await app.get(`ops/limits/api/${read}`);
      expect([read, response.status]).toEqual([read, 400]);
      expect(response.headers.get('content-type')).toContain('application/problem+json');
    }
  });
});
