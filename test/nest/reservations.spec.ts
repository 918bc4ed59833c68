import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  type LimitDefinition,
  LimiterService,
  type MemoryStore,
  RateLimitArgumentError,
  RateLimitModule,
  usd,
} from '../../lib/index.js';
import { createTestingStore, TestClock } from '../../lib/testing/index.js';

const define = {
  requests: { algo: 'sliding-window', rate: 3, interval: '1m' },
  tokens: { algo: 'fixed-window', rate: 1000, interval: '1m', hold: '1m' },
  money: { algo: 'budget', limit: usd(1), period: 'month', onLapse: 'release' },
  slots: { algo: 'concurrency', limit: 1, ttl: '1m' },
  queue: { algo: 'leaky-bucket', rate: 1, interval: '1s' },
} satisfies Record<string, LimitDefinition>;

describe('reservations that are held', () => {
  const clock = new TestClock();
  let app: TestingModule;
  let store: MemoryStore;
  let limiters: LimiterService;

  beforeEach(async () => {
    store = createTestingStore({ clock });
    app = await Test.createTestingModule({ imports: [RateLimitModule.forRoot({ store, define })] }).compile();
    await app.init();
    limiters = app.get(LimiterService);
  });
  afterEach(async () => {
    await app.close();
    await store.close();
  });

  const left = async (name: keyof typeof define) => (await limiters.for(name).peek('org:1')).remaining;

  /** Requests, tokens and money of one call. */
  const call = (cost: number, dollars: string) =>
    limiters.reserve([
      { limit: 'requests', key: 'org:1' },
      { limit: 'tokens', key: 'org:1', cost },
      { limit: 'money', key: 'org:1', cost: usd(dollars) },
    ]);

  it('count at once, and at what was used once they are settled', async () => {
    const money = limiters.for('money');
    const reservation = await money.reserve('org:1', { cost: usd('0.6') });
    expect(reservation).toMatchObject({ allowed: true, delayMs: 0, remaining: usd('0.4'), id: expect.any(String) });
    const refused = await money.reserve('org:1', { cost: usd('0.5') });
    expect(refused).toMatchObject({ allowed: false, remaining: usd('0.4'), retryAfterMs: 300_000 });
    expect(refused.id).toBeUndefined();
    await refused.settle(usd(1));
    await reservation.settle(usd('0.25'));
    await reservation.settle(usd('0.1'));
    await reservation.cancel();
    expect(await left('money')).toBe(usd('0.75'));
  });

  it('are handed on by their id', async () => {
    const money = limiters.for('money');
    const { id } = await money.reserve('org:1', { cost: usd('0.6') });
    await limiters.for('money').settle('org:1', id!, usd('0.7'));
    await money.settle('org:1', id!, 0);
    expect(await left('money')).toBe(usd('0.3'));
    await money.settle('org:2', id!, usd(1));
    expect((await money.peek('org:2')).remaining).toBe(usd(1));
  });

  it('lapse, and are corrected later', async () => {
    const reservation = await limiters.for('money').reserve('org:1', { cost: usd(1) });
    clock.advance('5m');
    expect(await left('money')).toBe(usd(1));
    await reservation.settle(usd(2));
    expect(await limiters.for('money').peek('org:1', 1)).toMatchObject({ allowed: false, remaining: 0 });
  });

  it('let those go on who wait for units', async () => {
    const tokens = limiters.for('tokens');
    const reservation = await tokens.reserve('org:1', { cost: 1000 });
    const waiting = tokens.acquire('org:1', { cost: 400, timeout: '2m' });
    await reservation.settle(500);
    await expect(waiting).resolves.toMatchObject({ allowed: true, remaining: 100 });
    // What was acquired is no hold: it lapses never.
    clock.advance('59s');
    expect(await left('tokens')).toBe(100);
  });

  it('are of all limits of a call or of none', async () => {
    const first = await call(600, '0.5');
    expect(first.allowed).toBe(true);
    expect(first.decisions.map(({ id }) => id !== undefined)).toEqual([false, true, true]);
    const second = await call(500, '0.1');
    expect(second).toMatchObject({ allowed: false, tightest: { limit: 'tokens', retryAfterMs: 60_000 } });
    await second.settle([1, 1, 1]);
    expect([await left('requests'), await left('tokens'), await left('money')]).toEqual([2, 400, usd('0.5')]);
    await first.settle([1, 450, usd('0.3')]);
    expect([await left('requests'), await left('tokens'), await left('money')]).toEqual([2, 550, usd('0.7')]);
    const third = await call(550, '0.7');
    await third.cancel();
    await third.cancel();
    expect([await left('requests'), await left('tokens'), await left('money')]).toEqual([2, 550, usd('0.7')]);
  });

  it('of a limit that is switched off hold nothing', async () => {
    await limiters.setMode('money', 'off');
    const reservation = await limiters.for('money').reserve('org:1', { cost: usd(5) });
    const call = await limiters.reserve([{ limit: 'money', key: 'org:1', cost: usd(5) }]);
    expect([reservation.allowed, reservation.id, call.allowed]).toEqual([true, undefined, true]);
    await Promise.all([reservation.settle(usd(9)), call.settle([usd(9)])]);
    await limiters.clearMode('money');
    expect(await left('money')).toBe(usd(1));
  });

  it('of a limit in shadow mode are never refused, and hold what fits', async () => {
    await limiters.setMode('money', 'shadow');
    const money = limiters.for('money');
    const first = await money.reserve('org:1', { cost: usd('0.8') });
    const second = await money.reserve('org:1', { cost: usd('0.8') });
    expect([first.allowed, second.allowed, second.id]).toEqual([true, true, undefined]);
    await second.settle(usd(1));
    await first.settle(usd('0.1'));
    await limiters.clearMode('money');
    expect(await left('money')).toBe(usd('0.9'));
  });

  it('outlast a change of the limit', async () => {
    const money = limiters.for('money');
    const reservation = await money.reserve('org:1', { cost: usd('0.6') });
    await limiters.setRate('money', { limit: usd(2) });
    expect(await left('money')).toBe(usd('1.4'));
    await reservation.settle(usd('0.5'));
    expect(await left('money')).toBe(usd('1.5'));
  });

  it.each<[what: string, act: (limiters: LimiterService) => Promise<unknown>, message: string]>([
    ['no hold', (all) => all.for('requests').reserve('a'), "cannot be reserved without the option 'hold'"],
    ['no hold to settle', (all) => all.for('requests').settle('a', '1-1-1-m', 1), "without the option 'hold'"],
    [
      'a lease',
      (all) => all.for('slots').reserve('a'),
      "limit 'slots' of algo 'concurrency' does not support reservations. Use fixed-window, calendar-window, budget, sliding-window, sliding-log, token-bucket, gcra or leaky-bucket",
    ],
    [
      'a lease of several',
      (all) => all.reserve([{ limit: 'slots', key: 'a' }]),
      "limit 'slots' of algo 'concurrency' cannot be reserved. Release its leases instead",
    ],
    ['no limits', (all) => all.reserve([]), 'expected at least one { limit, key }, received no limits'],
    [
      'an id',
      (all) => all.for('money').settle('a', 'none', 1),
      "expected that of a reservation that holds units, received 'none'",
    ],
    [
      'no id',
      (all) => all.for('money').settle('a', undefined as never, 1),
      'expected that of a reservation that holds units, received undefined',
    ],
    [
      'units of an id',
      (all) => all.for('money').settle('a', '1-0-1-m', 1),
      "expected that of a reservation that holds units, received '1-0-1-m'",
    ],
    [
      'an actual cost',
      (all) => all.for('money').settle('a', '1-1-1-m', 0.5),
      'actual cost: expected a whole number >= 0, received 0.5',
    ],
    [
      'actual costs',
      async (all) => (await all.reserve([{ limit: 'money', key: 'a' }])).settle([1, 2]),
      'expected a list of 1, one for each limit',
    ],
    [
      'one actual cost of several',
      async (all) => (await all.reserve([{ limit: 'money', key: 'a' }])).settle([-1]),
      'actual cost: expected a whole number >= 0, received -1',
    ],
  ])('refuse what is wrong: %s', async (_, act, message) => {
    await expect(act(limiters)).rejects.toThrow(RateLimitArgumentError);
    await expect(act(limiters)).rejects.toThrow(message);
  });
});
