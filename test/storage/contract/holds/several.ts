import { describe, expect, it } from '@jest/globals';
import { CompiledLimit, type Refund } from '../../../../lib/testing/store/index.js';
import { ask, compile, featuresOfOptions, featureTerms } from '../../../support/limits/stores.js';
import { DAY, type HoldsStage, identity, MINUTE, type OnLapse, SECOND, START, ten } from './stage.js';

const twentyInAWindow = (onLapse: OnLapse) =>
  compile({ algo: 'fixed-window', rate: 20, interval: '10s', hold: '1s', onLapse });

/** What becomes of many holds, of several limits and of finished periods. */
export function holdsOfSeveral(stage: HoldsStage): void {
  const { at, reserveAll, reserve, settle, left } = stage;

  it('settles all that was used, whatever is kept for others', async () => {
    for (const algo of Object.keys(ten)) {
      const features = featureTerms({ reserveFor: { critical: 0.8 } }, 'test');
      const limit = new CompiledLimit(ten[algo]!('charge'), { location: 'test', features, featuresOfOptions });
      const held = await reserve(limit.meet({ priority: 'default' }), 1);
      expect((await reserve(limit.meet({ priority: 'critical' }), 6)).allowed).toBe(true);
      await settle(held, 4);
      expect(await left(limit)).toBe(0);
    }
  });

  it('releases hundreds of holds at once, and tells no wait where more have lapsed', async () => {
    const limit = compile({ algo: 'budget', limit: 1300, period: 'month', hold: '5s', onLapse: 'release' });
    const entry = { limit, identity, cost: 1 };
    const reserveMany = (count: number) =>
      stage.store.check(Array.from({ length: count }, () => ({ entries: [entry], hold: true, refundable: true })));
    await reserveMany(300);
    at(5 * SECOND);
    await expect(ask(stage.store, limit, { cost: 1300 })).resolves.toMatchObject({ allowed: true, remaining: 0 });
    await stage.store.reset([{ limit, identity }]);
    await reserveMany(1300);
    at(10 * SECOND);
    const refused = { allowed: false, remaining: 1024, retryAfterMs: 1 };
    await expect(ask(stage.store, limit, { cost: 1300 })).resolves.toMatchObject(refused);
    await expect(ask(stage.store, limit, { cost: 1300 })).resolves.toMatchObject({ allowed: true, remaining: 0 });
  });

  it('waits for hundreds of holds that lapse, and never until the end of the window where there are more', async () => {
    const limit = compile({ algo: 'budget', limit: 1300, period: 'month', hold: '5s', onLapse: 'release' });
    const entry = { limit, identity, cost: 1 };
    const reserveMany = (count: number) =>
      stage.store.check(Array.from({ length: count }, () => ({ entries: [entry], hold: true, refundable: true })));
    await reserveMany(700);
    at(SECOND);
    await reserveMany(100);
    const wait = async (cost: number) => (await ask(stage.store, limit, { cost, peek: true })).retryAfterMs;
    expect([await wait(1200), await wait(1201)]).toEqual([4 * SECOND, 5 * SECOND]);
    at(2 * SECOND);
    await reserveMany(500);
    expect([await wait(800), await wait(1024), await wait(1300)]).toEqual([4 * SECOND, 5 * SECOND, 5 * SECOND]);
  });

  it('forgets no hold whose units are still to be given back', async () => {
    const limit = compile({ algo: 'budget', limit: 4000, period: 'month', hold: '5s', onLapse: 'release' });
    const entry = { limit, identity, cost: 1 };
    await stage.store.check(Array.from({ length: 3000 }, () => ({ entries: [entry], hold: true, refundable: true })));
    at(5 * SECOND);
    for (let i = 0; i < 3; i++) await reserve(limit, 1);
    expect(await left(limit)).toBe(3997);
  });

  it('keeps a thousand holds that have lapsed, and forgets the oldest first', async () => {
    const limit = compile({ algo: 'budget', limit: 5000, period: 'month', hold: '5s' });
    const held: Refund[] = [];
    for (let ms = 0; ms < 3; ms++) {
      at(ms);
      held.push(await reserve(limit, 3));
    }
    at(3);
    const entry = { limit, identity, cost: 1 };
    await stage.store.check(Array.from({ length: 998 }, () => ({ entries: [entry], hold: true, refundable: true })));
    at(5 * SECOND + 3);
    await reserve(limit, 1);
    await settle(held[0]!, 0);
    expect(await left(limit)).toBe(5000 - 9 - 999);
    await settle(held[1]!, 0);
    expect(await left(limit)).toBe(5000 - 6 - 999);
  });

  it('reserves of all limits or of none, each at its own cost', async () => {
    const requests = compile({ algo: 'sliding-window', rate: 2, interval: '1m' }, 'requests');
    const tokens = compile({ algo: 'fixed-window', rate: 1000, interval: '1m', hold: '1m' }, 'tokens');
    const money = compile({ algo: 'budget', limit: 50_000, period: 'month' }, 'money');
    const first = await reserveAll([
      [requests, 1],
      [tokens, 600],
      [money, 30_000],
    ]);
    expect(first.decisions.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 1],
      [true, 400],
      [true, 20_000],
    ]);
    const second = await reserveAll([
      [requests, 1],
      [tokens, 400],
      [money, 20_001],
    ]);
    expect(second.decisions.map(({ allowed }) => allowed)).toEqual([true, true, false]);
    expect(await Promise.all([requests, tokens, money].map(left))).toEqual([1, 400, 20_000]);
    await Promise.all([settle(first.held[1]!, 450), settle(first.held[2]!, 12_345)]);
    expect(await Promise.all([requests, tokens, money].map(left))).toEqual([1, 550, 37_655]);
  });

  it('settles in the period of the reservation, never in the next one', async () => {
    const limit = compile({
      algo: 'budget',
      limit: 10,
      period: 'month',
      timezone: 'Europe/Berlin',
      retain: '90d',
      hold: '5m',
    });
    const end = Date.parse('2026-10-01T00:00:00+02:00') - START;
    at(end - MINUTE);
    const [first, second] = [await reserve(limit, 6), await reserve(limit, 3)];
    at(end);
    expect(await left(limit)).toBe(10);
    await settle(first, 2);
    await ask(stage.store, limit, { cost: 4 });
    await settle(second, 8);
    expect(await left(limit)).toBe(6);
    const history = await stage.store.history({ limit, identity });
    expect(history.map(({ count }) => count)).toEqual([4, 10]);
  });

  describe('a fixed window that is over', () => {
    it('is corrected no more, nor is the one behind it', async () => {
      await ask(stage.store, twentyInAWindow('charge'));
      at(8 * SECOND);
      const [more, less] = [await reserve(twentyInAWindow('charge'), 5), await reserve(twentyInAWindow('charge'), 5)];
      at(11 * SECOND);
      await settle(more, 10);
      await settle(less, 1);
      expect(await left(twentyInAWindow('charge'))).toBe(20);
    });

    it('is so, too, where all of it was given back meanwhile', async () => {
      await reserve(twentyInAWindow('release'), 1);
      at(5 * SECOND);
      const held = await reserve(twentyInAWindow('release'), 6);
      at(7 * SECOND);
      // Somebody sees the lapse, and leaves nothing.
      await ask(stage.store, twentyInAWindow('release'));
      await stage.store.refund([{ limit: twentyInAWindow('release'), identity, units: 1 }]);
      at(12 * SECOND);
      await settle(held, 6);
      expect(await left(twentyInAWindow('release'))).toBe(20);
    });

    it('counts what is settled until then, also where all was given back meanwhile', async () => {
      const held = await reserve(twentyInAWindow('release'), 6);
      at(2 * SECOND);
      await ask(stage.store, twentyInAWindow('release'));
      await stage.store.refund([{ limit: twentyInAWindow('release'), identity, units: 1 }]);
      at(4 * SECOND);
      await ask(stage.store, twentyInAWindow('release'), { cost: 3 });
      await settle(held, 8);
      await expect(ask(stage.store, twentyInAWindow('release'), { cost: 10 })).resolves.toMatchObject({
        allowed: false,
        remaining: 9,
        retryAfterMs: 6 * SECOND,
      });
      at(10 * SECOND);
      expect(await left(twentyInAWindow('release'))).toBe(20);
    });

    it('is forgotten where what was held is settled at nothing', async () => {
      await settle(await reserve(twentyInAWindow('release'), 6), 0);
      at(9 * SECOND);
      await ask(stage.store, twentyInAWindow('release'), { cost: 15 });
      await expect(ask(stage.store, twentyInAWindow('release'), { cost: 10 })).resolves.toMatchObject({
        allowed: false,
        retryAfterMs: 10 * SECOND,
      });
    });
  });

  it('releases in the period of the reservation, never in the next one', async () => {
    const limit = compile({ algo: 'budget', limit: 10, period: 'day', retain: '7d', hold: '5m', onLapse: 'release' });
    const end = Date.parse('2026-09-22T00:00:00Z') - START;
    at(end - MINUTE);
    const held = await reserve(limit, 6);
    await ask(stage.store, limit);
    at(end + MINUTE);
    await ask(stage.store, limit, { cost: 4 });
    at(end + 4 * MINUTE);
    expect((await stage.store.history({ limit, identity })).map(({ count }) => count)).toEqual([4, 1]);
    await ask(stage.store, limit);
    expect((await stage.store.history({ limit, identity })).map(({ count }) => count)).toEqual([5, 1]);
    await settle(held, 2);
    expect((await stage.store.history({ limit, identity })).map(({ count }) => count)).toEqual([5, 3]);
    at(end + 7 * DAY);
    expect(await left(limit)).toBe(10);
  });

  it('counts money beyond four billion dollars to the micro-unit', async () => {
    const limit = compile({
      algo: 'budget',
      limit: Number.MAX_SAFE_INTEGER,
      period: 'year',
      hold: '5m',
      onLapse: 'release',
    });
    const held = await reserve(limit, 2 ** 52 + 1);
    expect(await left(limit)).toBe(2 ** 52 - 2);
    await settle(held, Number.MAX_SAFE_INTEGER - 1);
    expect(await left(limit)).toBe(1);
    const last = await reserve(limit, 1);
    await settle(last, Number.MAX_SAFE_INTEGER);
    await expect(ask(stage.store, limit)).resolves.toMatchObject({ allowed: false, remaining: 0 });
  });
}
