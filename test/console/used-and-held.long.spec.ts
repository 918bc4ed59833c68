import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { setTimeout as pause } from 'node:timers/promises';
import { type LimitDefinition, usd } from '../../lib/index.js';
import { freshPrefix } from '../support/limits/stores.js';
import { until } from '../support/time/until.js';
import { ConsoleApp, type LimitState, type Lookup } from './console-app.js';

const REDIS = process.env['TEST_REDIS_URL'] as string;
const ZONE = 'Pacific/Kiritimati';

const define: Record<string, LimitDefinition> = {
  tokens: {
    algo: 'sliding-window',
    rate: 1000,
    interval: '1m',
    unit: 'tokens',
    usage: { keep: '400d', timezone: ZONE },
    hold: '5m',
  },
  brief: { algo: 'fixed-window', rate: 1000, interval: '1m', usage: { keep: '2d', maxKeys: 1 } },
  plain: { algo: 'fixed-window', rate: 1000, interval: '1m' },
  money: { algo: 'budget', limit: usd(5), unit: 'USD', period: 'month', hold: '100ms' },
  slots: { algo: 'concurrency', limit: 5, ttl: '1h' },
  wide: { algo: 'concurrency', limit: 1000, ttl: '1m' },
  cores: { algo: 'adaptive', min: 2, max: 20, scope: 'instance' },
};

const DAY_MS = 86_400_000;
/** A date in the zone of `tokens`, which has no summer time. */
const daysAgo = (days: number) =>
  new Intl.DateTimeFormat('en-CA', { timeZone: ZONE, dateStyle: 'short' }).format(Date.now() - days * DAY_MS);
const today = () => daysAgo(0);

describe.each([
  ['on Redis', REDIS],
  ['in process', undefined],
])('the look-up of a key %s', (_name, redis) => {
  let app: ConsoleApp;

  beforeAll(async () => {
    app = await ConsoleApp.start({
      controllers: [],
      limits: { define, prefix: freshPrefix(), ...(redis !== undefined && { redis }) },
    });
  });
  afterAll(() => app.close());

  const of = async (limit: string, identity: string): Promise<LimitState> => {
    const { limits } = (await (await app.post('lookup', { identity })).json()) as Lookup;
    return limits.find((each) => each.limit === limit)!;
  };

  it('has what limits with `usage` charged it lately, by days of their zone', async () => {
    await app.service.for('tokens').consume('acme', 30);
    await app.service.for('tokens').consume('acme', 12);
    const { usage, explanation } = await of('tokens', 'acme');
    expect(usage).toEqual({ timezone: ZONE, since: daysAgo(29), days: [{ day: today(), units: 42 }] });
    expect(explanation).toContain(`charged by days (${ZONE}): ${today()} 42`);
    expect(await of('plain', 'acme')).not.toHaveProperty('usage');
    expect((await of('tokens', 'other')).usage).toEqual({ timezone: ZONE, since: daysAgo(29), days: [] });
  });

  it('leaves out what came back of it', async () => {
    const tokens = app.service.for('tokens');
    await tokens.consume('back', 30);
    await tokens.refund('back', 10);
    expect((await of('tokens', 'back')).usage?.days).toEqual([{ day: today(), units: 20 }]);
  });

  it('has the leases that it holds, and until when', async () => {
    const slots = app.service.for('slots');
    const first = await slots.consume('acme', 2);
    await pause(20);
    await slots.consume('acme');
    const state = await of('slots', 'acme');
    expect(state).toMatchObject({ used: 3, quota: 5, leases: { count: 2, units: 3 } });
    const { firstLapseMs = 0, lastLapseMs = 0 } = state.leases!;
    expect(firstLapseMs).toBeGreaterThan(3_000_000);
    expect(lastLapseMs).toBeGreaterThanOrEqual(firstLapseMs + 15);
    expect(lastLapseMs).toBeLessThanOrEqual(3_600_500);
    expect(state.explanation).toMatch(/2 leases of 3 units, the first lapses in /);
    await first.lease!.release();
    expect((await of('slots', 'acme')).leases).toMatchObject({ count: 1, units: 1 });
    expect((await of('slots', 'other')).leases).toEqual({ count: 0, units: 0 });
    expect(await of('cores', 'acme')).not.toHaveProperty('leases');
  });

  it('adds up no more than 256 of them', async () => {
    const { service } = app;
    for (let lease = 0; lease < 257; lease++) await service.for('wide').consume('acme');
    expect((await of('wide', 'acme')).leases).toEqual({ count: 257, firstLapseMs: expect.any(Number) });
  });

  it('has what it reserved at an estimate, until that is settled or lapses', async () => {
    const tokens = app.service.for('tokens');
    const first = await tokens.reserve('holder', { cost: 100 });
    await tokens.reserve('holder', { cost: 50 });
    const { holds, explanation } = await of('tokens', 'holder');
    expect(holds).toMatchObject({ count: 2, units: 150, firstLapseMs: expect.any(Number) });
    expect(holds!.lastLapseMs).toBeLessThanOrEqual(300_500);
    expect(explanation).toMatch(/2 reservations of 150 units, the first lapses in /);
    await first.settle(70);
    expect((await of('tokens', 'holder')).holds).toMatchObject({ count: 1, units: 50 });
    await app.service.for('money').reserve('holder', { cost: usd(1) });
    await until(async () => (await of('money', 'holder')).holds!.count === 0, undefined, 100);
    expect((await of('money', 'holder')).holds).toEqual({ count: 0, units: 0 });
    expect(await of('plain', 'holder')).not.toHaveProperty('holds');
  });
});

it('the look-up of a key says whether the key may be one that is not recorded', async () => {
  const app = await ConsoleApp.start({ controllers: [], limits: { define } });
  for (const key of ['first', 'second']) await app.service.for('brief').consume(key);
  const usageOf = async (identity: string) => {
    const { limits } = (await (await app.post('lookup', { identity })).json()) as Lookup;
    return limits.find(({ limit }) => limit === 'brief')!.usage;
  };
  expect(await usageOf('first')).toMatchObject({ days: [{ units: 1 }] });
  expect(await usageOf('first')).not.toHaveProperty('leftOut');
  expect(await usageOf('second')).toEqual({
    timezone: 'UTC',
    since: new Date(Date.now() - 2 * DAY_MS).toISOString().slice(0, 10),
    days: [],
    leftOut: true,
  });
  await app.close();
});
