import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { RateLimitConfigError, type RateLimitModuleOptions } from '../../../lib/index.js';
import { propertyRuns } from '../../support/limits/property-runs.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { RatesApp, startForEach, until } from './overrides-app.js';

/** So slow that time alone changes no decision. */
const define = {
  login: { algo: 'gcra', rate: 10, interval: '365d' },
  second: { algo: 'fixed-window', rate: 20, interval: '365d' },
} as const;

const kinds: Record<string, () => RateLimitModuleOptions> = {
  'in process': () => ({ define }),
  'on Redis': () => ({ define, redis: process.env['TEST_REDIS_URL'], prefix: freshPrefix() }),
};

const KEYS = [undefined, 'tenant:*', 'tenant:eu:*', 'tenant:acme', 'tenant:eu:1'] as const;
const IDENTITIES = ['user:1', 'tenant:b', 'tenant:eu:2', 'tenant:acme', 'tenant:eu:1'];

/** A change that is made through the service. */
const key = fc.constantFrom(...KEYS).map((each) => (each === undefined ? {} : { key: each }));
const name = fc.constantFrom('login', 'second');
const changeOf = (inherits: readonly ('keep' | 'proportional' | 'additive' | 'reset')[]) =>
  fc.oneof(
    fc.record({
      what: fc.constant('setRate' as const),
      name,
      key,
      rate: fc.integer({ min: 1, max: 200 }),
      inherit: fc.constantFrom(...inherits),
    }),
    fc.record({ what: fc.constant('clearRate' as const), name, key }),
    fc.record({
      what: fc.constant('setMode' as const),
      name,
      key,
      mode: fc.constantFrom('enforce' as const, 'shadow' as const, 'off' as const),
    }),
    fc.record({ what: fc.constant('clearMode' as const), name, key }),
  );
type Change = typeof changeOf extends (...args: never) => fc.Arbitrary<infer T> ? T : never;

/** An override as the service tells it. */
const override = (patch: object, version: number, more = {}) => ({
  patch,
  version,
  inherit: 'keep',
  expiresAt: undefined,
  ...more,
});

describe.each(Object.entries(kinds))('the history of changes, %s', (_, options) => {
  let app: RatesApp;

  startForEach(options, (started) => (app = started));

  async function make(change: Change): Promise<void> {
    const { service } = app;
    if (change.what === 'setRate') {
      await service.setRate(change.name, { rate: change.rate }, { ...change.key, inherit: change.inherit });
    } else if (change.what === 'setMode') await service.setMode(change.name, change.mode, change.key);
    else await service[change.what](change.name, change.key);
  }

  /** What each identity would be told by each limit. */
  const decisions = () =>
    Promise.all(
      ['login', 'second'].flatMap((limit) =>
        IDENTITIES.map(async (identity) => {
          const {
            resetAfterMs: _reset,
            retryAfterMs: _retry,
            ...decision
          } = await app.service.for(limit).peek(identity, 3);
          return decision;
        }),
      ),
    );

  it('says who changed what, when and why', async () => {
    const { service } = app;
    const before = Date.now();
    await service.setRate('login', { rate: 20 }, { by: 'eva', reason: 'launch' });
    await service.setRate('login', { rate: 30 }, { key: 'tenant:*' });
    await service.setMode('hourly', 'off', { expiresIn: '1h', by: 'ben' });
    await service.clearRate('login', { by: 'eva', reason: 'over' });
    await service.setRate('login', { rate: 40 }, { key: 'tenant:*' });
    const all = await service.changes();
    expect(all).toMatchObject([
      {
        version: 5,
        overrides: [
          {
            kind: 'rate',
            limit: 'login',
            key: 'tenant:*',
            before: override({ rate: 30 }, 2, { key: 'tenant:*' }),
            after: override({ rate: 40 }, 5, { key: 'tenant:*' }),
          },
        ],
      },
      {
        version: 4,
        by: 'eva',
        reason: 'over',
        overrides: [{ before: override({ rate: 20 }, 1, { by: 'eva', reason: 'launch' }), after: undefined }],
      },
      {
        version: 3,
        by: 'ben',
        overrides: [
          { kind: 'mode', limit: 'hourly', before: undefined, after: { mode: 'off', expiresAt: expect.any(Number) } },
        ],
      },
      { version: 2, overrides: [{ before: undefined, after: override({ rate: 30 }, 2, { key: 'tenant:*' }) }] },
      { version: 1, by: 'eva', reason: 'launch', overrides: [{ kind: 'rate', limit: 'login', before: undefined }] },
    ]);
    expect(all[4]!.at).toBeGreaterThanOrEqual(before - 10);
    expect(all[0]!.at).toBeLessThanOrEqual(Date.now() + 10);
    expect(all[3]).not.toHaveProperty('by');
    expect((await service.changes({ last: 2 })).map(({ version }) => version)).toEqual([5, 4]);
    expect((await service.changes({ limit: 'hourly' })).map(({ version }) => version)).toEqual([3]);
    expect((await service.changes({ limit: 'login', last: 2 })).map(({ version }) => version)).toEqual([5, 4]);
  });

  it('holds no call that changed nothing', async () => {
    const { service } = app;
    await service.clearRate('login');
    await service.setRate('login', { rate: 20 });
    await service.trySetRate('login', { rate: 30 });
    await service.setRate('login', { rate: 0 }).catch(() => undefined);
    await service.clearMode('login');
    expect(await service.changes()).toHaveLength(1);
    expect(await service.rollback(1)).toBe(false);
    expect(await service.changes()).toHaveLength(1);
  });

  it('is gone back in, and the rollback is in it', async () => {
    const { service } = app;
    await service.setRate('login', { rate: 20 }, { by: 'eva' });
    await service.setRate('login', { rate: 30 }, { key: 'tenant:acme', expiresIn: '1h' });
    await service.setRate('login', { rate: 50 });
    await service.setMode('login', 'off', { key: 'tenant:*' });
    await service.clearRate('login', { key: 'tenant:acme' });
    expect(await service.rollback(2, { by: 'ops', reason: 'incident' })).toBe(true);
    expect(await service.getRate('login')).toMatchObject({
      options: { rate: 20 },
      override: { version: 6, by: 'ops', reason: 'incident' },
    });
    const acme = await service.getRate('login', { key: 'tenant:acme' });
    expect(acme).toMatchObject({ source: 'key', options: { rate: 30 } });
    expect(acme.override!.expiresAt).toBeGreaterThan(Date.now() + 3_500_000);
    expect(await service.getMode('login', { key: 'tenant:b' })).toMatchObject({
      mode: 'enforce',
      source: 'configured',
    });
    const [rollback] = await service.changes();
    expect(rollback).toMatchObject({ version: 6, rollbackTo: 2, by: 'ops', reason: 'incident' });
    expect(rollback!.overrides).toHaveLength(3);
    // A rollback can be undone as any change.
    expect(await service.rollback(5)).toBe(true);
    expect(await service.getRate('login')).toMatchObject({ options: { rate: 50 } });
    expect(await service.getMode('login', { key: 'tenant:b' })).toMatchObject({ mode: 'off' });
    expect(await service.rollback(0)).toBe(true);
    expect(await service.listRates('login')).toEqual({ overrides: [], next: undefined });
    expect(await service.getRate('login')).toMatchObject({ source: 'configured', options: { rate: 10 } });
  });

  it('does not bring back counters from before a reset, nor what has ended meanwhile', async () => {
    const { service } = app;
    await service.for('login').consume('tenant:acme', 10);
    await service.setRate('login', { rate: 20 }, { key: 'tenant:b', expiresIn: 30 });
    await service.setRate('login', { rate: 20 }, { key: 'tenant:acme', inherit: 'reset' });
    await service.setRate('login', { rate: 30 }, { key: 'tenant:b' });
    const [first] = (await service.changes()).slice(-1);
    const { expiresAt } = first!.overrides[0]!.after!;
    await until(async () => Date.now() > expiresAt!, true);
    await service.rollback(1);
    expect(await app.remaining('tenant:acme')).toBe(10);
    expect(await app.quota('login', 'tenant:b')).toBe(10);
  });

  it.each([-1, 1.5, 4, NaN, '1', undefined])(
    'refuses to go back to version %p, and changes nothing',
    async (version) => {
      const { service } = app;
      for (let rate = 1; rate <= 3; rate++) await service.setRate('login', { rate });
      const call = service.rollback(version as number);
      await expect(call).rejects.toThrow(RateLimitConfigError);
      await expect(call).rejects.toThrow(
        /^LimiterService\.rollback\.version: expected a whole number from 0 to 3, received .+; the history has only these$/,
      );
      expect(await service.changes()).toHaveLength(3);
    },
  );

  it.each<[string, () => Promise<unknown>, string]>([
    ['changes', () => app.service.changes({ last: 0 }), 'last: expected a whole number >= 1 and <= 1000, received 0'],
    [
      'changes',
      () => app.service.changes({ last: 1001 }),
      'last: expected a whole number >= 1 and <= 1000, received 1001',
    ],
    ['changes', () => app.service.changes({ limit: 'nope' }), "unknown limit 'nope'"],
    ['changes', () => app.service.changes({ limit: 5 as never }), "limit: expected a limit's name, received 5"],
    [
      'changes',
      () => app.service.changes({ since: 5 } as never),
      "unknown option 'since', expected one of limit, last",
    ],
    [
      'rollback',
      () => app.service.rollback(0, { by: '' }),
      "by: expected a string of 1 to 200 characters on one line, without control characters and marks of direction, received ''",
    ],
    [
      'rollback',
      () => app.service.rollback(0, { key: 'x' } as never),
      "unknown option 'key', expected one of by, reason",
    ],
  ])('refuses options of %s that are wrong', async (_what, call, message) => {
    await expect(call()).rejects.toThrow(RateLimitConfigError);
    await expect(call()).rejects.toThrow(message);
  });

  it('keeps the last 1,000 changes', async () => {
    const { service } = app;
    for (let round = 1; round <= 1050; round++) await service.setRate('login', { rate: round });
    const all = await service.changes({ last: 1000 });
    expect([all.length, all[0]!.version, all.at(-1)!.version]).toEqual([1000, 1050, 51]);
    await expect(service.rollback(49)).rejects.toThrow('expected a whole number from 50 to 1050');
    expect(await service.rollback(50)).toBe(true);
    expect(await app.quota()).toBe(50);
  });

  it('gives every identity the decisions of before, whatever was changed since', async () => {
    let identity = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(changeOf(['keep', 'proportional', 'additive', 'reset']), { maxLength: 6 }),
        fc.array(changeOf(['keep', 'proportional', 'additive']), { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 0, max: 6 }),
        async (first, later, used) => {
          for (const change of first) await make(change);
          const units = used + (identity++ % 2);
          for (const each of units > 0 ? IDENTITIES : []) {
            for (const limit of ['login', 'second']) await app.service.for(limit).consume(each, units);
          }
          const before = await decisions();
          const [last] = await app.service.changes({ last: 1 });
          for (const change of later) await make(change);
          await app.service.rollback(last?.version ?? 0);
          expect(await decisions()).toEqual(before);
        },
      ),
      { numRuns: propertyRuns(25) },
    );
  });
});

it('holds every change of several instances that change at once', async () => {
  const options = { redis: process.env['TEST_REDIS_URL'], prefix: freshPrefix() } as const;
  const apps = await Promise.all([1, 2, 3].map(() => RatesApp.start(options)));
  const calls = Array.from({ length: 150 }, (_, index) =>
    apps[index % 3]!.service.setRate('login', { rate: 100 + index }, { by: String(index), key: `k${index % 2}` }),
  );
  const rollbacks = apps.map(({ service }) => service.rollback(0, { by: 'rollback' }));
  await Promise.all([...calls, ...rollbacks]);
  const all = await apps[0]!.service.changes({ last: 1000 });
  expect(all.map(({ version }) => version)).toEqual(
    Array.from({ length: all.length }, (_, index) => all.length - index),
  );
  const by = all.map((each) => each.by).filter((each) => each !== 'rollback');
  expect(new Set(by).size).toBe(150);
  const states = await Promise.all(
    apps.map(({ service }) => Promise.all(['k0', 'k1', 'k2'].map((each) => service.getRate('login', { key: each })))),
  );
  for (const state of states) expect(state).toEqual(states[0]);
  // Each change knows the one before it.
  const ofKey = all.flatMap(({ overrides }) => overrides.filter((each) => each.key === 'k0'));
  for (const [index, { before }] of ofKey.slice(0, -1).entries()) expect(before).toEqual(ofKey[index + 1]!.after);
  for (const app of apps) await app.close();
});
