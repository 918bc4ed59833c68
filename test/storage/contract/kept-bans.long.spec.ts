import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { LimiterService, MemoryStore, RateLimitModule } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { ask, compile, ManualClock } from '../../support/limits/stores.js';

const HOUR_MS = 3_600_000;
const plain = compile({ algo: 'gcra', rate: 10, interval: '1h' }, 'plain');
const login = new CompiledLimit(
  { algo: 'fixed-window', rate: 1, interval: '1m' },
  { location: 'test', name: 'login', blockFor: HOUR_MS * 1000 },
);
const stepped = new CompiledLimit(
  { algo: 'fixed-window', rate: 1, interval: '1m' },
  { location: 'test', name: 'stepped', escalation: { steps: [HOUR_MS * 1000], forgetAfter: 10 * HOUR_MS * 1000 } },
);

describe('bans of a process', () => {
  let clock: ManualClock;
  let store: MemoryStore;

  beforeEach(() => {
    clock = new ManualClock();
    store = new MemoryStore({ maxKeys: 100, clock: clock.now });
  });
  afterEach(() => store.close());

  /** Identities that have themselves blocked. */
  const offend = async (count: number, name = 'flood', limit = login) => {
    for (let i = 0; i < count; i++) await ask(store, limit, { identity: `${name}:${i}`, cost: 2 });
  };
  const blocked = async (count: number, name: string, limit = login) => {
    let refused = 0;
    for (let i = 0; i < count; i++) {
      if ((await store.blockedFor({ limit, identity: `${name}:${i}` })) > 0) refused++;
    }
    return refused;
  };

  it('outlast those of others that have themselves blocked, as many as there may be counters', async () => {
    await offend(20, 'early');
    await offend(100);
    await expect(ask(store, login, { identity: 'early:0' })).resolves.toMatchObject({ allowed: false });
    expect(await blocked(20, 'early')).toBe(20);
    expect(await blocked(100, 'flood')).toBe(100);
    expect(store.size).toBe(100);
  });

  it('by hand outlast any number of others', async () => {
    for (let i = 0; i < 20; i++) await store.block({ limit: plain, identity: `by-hand:${i}` }, HOUR_MS);
    await offend(2000);
    expect(await blocked(20, 'by-hand', plain)).toBe(20);
    expect(await blocked(2000, 'flood')).toBeLessThanOrEqual(200);
  });

  it('leave half of the room to other counters, and end by their time', async () => {
    for (let i = 0; i < 40; i++) await ask(store, plain, { identity: `user:${i}` });
    await offend(150);
    for (let i = 0; i < 40; i++) {
      await expect(ask(store, plain, { identity: `user:${i}`, peek: true })).resolves.toMatchObject({ remaining: 9 });
    }
    clock.advanceMs(HOUR_MS);
    expect(await blocked(150, 'flood')).toBe(0);
    await expect(ask(store, login, { identity: 'flood:0' })).resolves.toMatchObject({ allowed: true });
  });

  it('are lifted by whoever may, wherever they are kept', async () => {
    await offend(120, 'early');
    await store.block({ limit: login, identity: 'early:0' }, 0);
    await store.reset([{ limit: login, identity: 'early:1' }]);
    expect(await blocked(3, 'early')).toBe(1);
    for (const who of ['early:0', 'early:1']) {
      await expect(ask(store, login, { identity: who })).resolves.toMatchObject({ allowed: true });
    }
    await offend(200);
    expect(await blocked(2, 'early')).toBe(0);
  });

  it('keep their offences', async () => {
    await offend(120, 'early', stepped);
    clock.advanceMs(HOUR_MS);
    await expect(ask(store, stepped, { identity: 'early:0', peek: true })).resolves.toMatchObject({ offences: 1 });
    await expect(ask(store, stepped, { identity: 'early:0', cost: 2 })).resolves.toMatchObject({ offences: 2 });
    clock.advanceMs(11 * HOUR_MS);
    await expect(ask(store, stepped, { identity: 'early:1', peek: true })).resolves.toMatchObject({ offences: 0 });
  });

  it('take a bounded part of the memory', async () => {
    const small = new MemoryStore({ maxKeys: 10_000, maxBytes: 100_000, clock: clock.now });
    for (let i = 0; i < 3000; i++) {
      await ask(small, login, { identity: `flood:${i}`, cost: 2 });
      expect(small.bytes).toBeLessThanOrEqual(100_000);
    }
    await small.close();
  });
});

describe('the bans of an app without Redis', () => {
  let app: TestingModule;
  afterEach(() => app.close());

  it('outlast a flood of identities that have themselves blocked', async () => {
    const define = {
      login: { algo: 'fixed-window', rate: 1, interval: '1m', blockFor: '1h' },
      pages: { algo: 'gcra', rate: 10, interval: '1h' },
    } as const;
    app = await Test.createTestingModule({ imports: [RateLimitModule.forRoot({ maxKeys: 1000, define })] }).compile();
    const service = app.get(LimiterService);
    const logins = service.for('login');
    for (let i = 0; i < 500; i++) await service.for('pages').consume(`user:${i}`);
    const offend = async (name: string, count: number) => {
      for (let i = 0; i < count; i++)
        for (let attempt = 0; attempt < 2; attempt++) await logins.consume(`${name}:${i}`);
    };
    await offend('early', 50);
    await offend('flood', 600);
    const still = await Promise.all(Array.from({ length: 50 }, (_, i) => logins.consume(`early:${i}`)));
    expect(still.filter(({ allowed, retryAfterMs }) => !allowed && retryAfterMs > 60_000)).toHaveLength(50);
  });
});
