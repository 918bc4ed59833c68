import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { TestingModule } from '@nestjs/testing';
import { MemoryStore, RateLimitWaitersError } from '../../../lib/index.js';
import type { Check } from '../../../lib/testing/store/index.js';
import { startLimiters } from '../../integrations/outbound/upstream.js';
import { until } from '../../support/time/until.js';
import { outcomeOf } from '../../support/limits/waiting.js';

let app: TestingModule;
afterEach(async () => {
  jest.useRealTimers();
  await app.close();
});

/** Counts what it is asked. */
class CountingStore extends MemoryStore {
  checks = 0;

  override check(checks: readonly Check[]) {
    this.checks += checks.length;
    return super.check(checks);
  }
}

const windows = { algo: 'fixed-window', rate: 1, interval: '1h' } as const;
const define = {
  window: windows,
  paced: { algo: 'gcra', rate: 1, interval: '1h', burst: 1 },
  queue: { algo: 'leaky-bucket', rate: 1, interval: '1h', queue: 1 },
  slots: { algo: 'concurrency', limit: 1, ttl: '1h' },
  org: { ...windows, key: () => undefined },
  team: { ...windows, within: 'org', key: () => undefined },
  other: windows,
} as const;

async function start(options: object = {}) {
  const store = new CountingStore();
  const started = await startLimiters({ define, store, ...options });
  ({ app } = started);
  return { store, limiters: started.limiters };
}

describe('calls that wait', () => {
  it.each(['window', 'paced', 'queue', 'slots', 'team'])('are as many as may for a key, of %s', async (name) => {
    const { limiters } = await start({ maxWaiters: 3 });
    const limiter = limiters.for(name);
    const of = (org: string) => (name === 'team' ? { within: { org } } : {});
    await limiter.consume('a', of('a'));
    const outcomes = Array.from({ length: 3 }, () => outcomeOf(limiter.acquire('a', of('a'))));
    await turn();
    await turn();
    const further = limiter.acquire('a', of('a'));
    await expect(further).rejects.toThrow(RateLimitWaitersError);
    await expect(further).rejects.toThrow(
      `limit '${name}' has 3 calls of this process waiting for one key, the maximum that option 'maxWaiters' allows`,
    );
    // Other keys are not concerned.
    expect((await limiter.acquire('b', of('b'))).allowed).toBe(true);
    expect(outcomes).toEqual([{}, {}, {}]);
  });

  it('are as many as may, though units of the next second are reserved for them', async () => {
    jest.useFakeTimers();
    const { limiters } = await start({
      maxWaiters: 3,
      define: { fast: { algo: 'gcra', rate: 20, interval: '1s', burst: 1 } },
    });
    const outcomes: ReturnType<typeof outcomeOf>[] = [];
    for (let i = 0; i < 10; i++) {
      outcomes.push(outcomeOf(limiters.for('fast').acquire('a')));
      await turn();
    }
    expect(outcomes.map(({ value, reason }) => (value ? 'taken' : reason ? 'rejected' : 'waiting'))).toEqual([
      'taken',
      ...Array.from({ length: 3 }, () => 'waiting'),
      ...Array.from({ length: 6 }, () => 'rejected'),
    ]);
  });

  it('are never refused while there are units for them', async () => {
    const { limiters } = await start({
      maxWaiters: 6,
      define: { many: { algo: 'fixed-window', rate: 50, interval: '1h' } },
    });
    const limiter = limiters.for('many');
    const outcomes = Array.from({ length: 60 }, () => outcomeOf(limiter.acquire('a')));
    await until(() => outcomes.filter(({ value }) => value !== undefined).length === 50);
    await until(() => outcomes.filter(({ reason }) => reason !== undefined).length === 4);
    // Those who came last.
    expect(outcomes.slice(50, 56)).toEqual(Array.from({ length: 6 }, () => ({})));
  });

  it('are ten times as many for all keys together, and make room as they leave', async () => {
    const { limiters } = await start({ maxWaiters: 1 });
    const limiter = limiters.for('window');
    const leaving = new AbortController();
    const { signal } = leaving;
    for (let key = 0; key < 10; key++) {
      await limiter.consume(`${key}`);
      outcomeOf(limiter.acquire(`${key}`, { signal }));
    }
    await turn();
    await expect(limiter.acquire('other')).rejects.toThrow(
      "limit 'window' lets no more calls wait: 10 of this process wait for units, ten times the maximum for one key that option 'maxWaiters' (1) allows",
    );
    leaving.abort(new Error('enough'));
    expect((await limiter.acquire('other')).allowed).toBe(true);
  });

  it('for several levels are woken only by what they wait for', async () => {
    const { limiters, store } = await start();
    const team = limiters.for('team');
    for (let user = 0; user < 20; user++) {
      const within = { org: `org:${user % 2}` };
      await team.consume(`user:${user}`, { within, cost: 1 });
      outcomeOf(team.acquire(`user:${user}`, { within }));
    }
    await turn();
    await turn();
    await limiters.for('other').consume('x');
    const before = store.checks;
    await limiters.for('other').refund('x', 1);
    for (let round = 0; round < 5; round++) await turn();
    expect(store.checks).toBe(before);
    await team.refund('user:0', 1, { within: { org: 'org:0' } });
    await until(() => store.checks > before);
  });

  it.each([0, 'x', 1.5])('are no wrong number: %p', async (maxWaiters) => {
    await expect(start({ maxWaiters })).rejects.toThrow(
      /RateLimitModule\.maxWaiters: expected a whole number >= 1, received/,
    );
    await start();
  });
});
