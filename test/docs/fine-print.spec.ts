import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type AlgorithmOptions, MemoryStore } from '../../lib/index.js';
import { ask, compile, ManualClock } from '../support/limits/stores.js';

const identity = 'ip:203.0.113.7';

/** What `docs/reference/exactness.md` says under "The fine print", of the store in process; the stores decide alike. */
describe('the fine print', () => {
  let clock: ManualClock;
  let store: MemoryStore;
  let start: number;

  beforeEach(() => {
    clock = new ManualClock();
    // A whole hour, so that slices begin now.
    start = clock.micros = Date.parse('2026-09-21T10:00:00Z') * 1000;
    store = new MemoryStore({ clock: clock.now, slackMs: 1e9 });
  });
  afterEach(() => store.close());

  const at = (ms: number) => (clock.micros = start + ms * 1000);
  const take = (options: AlgorithmOptions, cost = 1) => ask(store, compile(options, 'one'), { cost });
  const peek = (options: AlgorithmOptions, cost = 1) => ask(store, compile(options, 'one'), { cost, peek: true });
  const refund = (options: AlgorithmOptions, units: number) =>
    store.refund([{ limit: compile(options, 'one'), identity, units }]);

  it.each([
    { algo: 'sliding-log', rate: 4, interval: '10s' },
    { algo: 'sliding-window', rate: 4, interval: '10s', slices: 5 },
  ] as const)('$algo: the oldest units are given back first', async (limit) => {
    await take(limit, 2);
    at(4000);
    await take(limit, 2);
    await refund(limit, 2);
    // What is left is of 4 s.
    at(13_999);
    expect(await peek(limit)).toMatchObject({ remaining: 2 });
  });

  it('a refused check writes a translated state, a look does not', async () => {
    const limit: AlgorithmOptions = { algo: 'gcra', rate: 1, interval: '10s', burst: 1 };
    await take(limit);
    at(-60_000);
    expect(await peek(limit)).toMatchObject({ allowed: false, retryAfterMs: 10_000 });
    at(-55_000);
    expect(await peek(limit)).toMatchObject({ allowed: false, retryAfterMs: 10_000 });
    expect(await take(limit)).toMatchObject({ allowed: false, retryAfterMs: 10_000 });
    at(-50_000);
    expect(await peek(limit)).toMatchObject({ allowed: false, retryAfterMs: 5000 });
  });

  it('a step is measured by the new interval', async () => {
    const limit = { algo: 'fixed-window', rate: 1, interval: '1m' } as const;
    await take(limit);
    at(-10_000);
    expect(await peek(limit)).toMatchObject({ allowed: false, retryAfterMs: 70_000 });
    expect(await peek({ ...limit, interval: '5s' })).toMatchObject({ allowed: false, retryAfterMs: 5000 });
  });

  it('a delay leaves out what the clock has to catch up, a wait does not', async () => {
    const limit: AlgorithmOptions = { algo: 'leaky-bucket', rate: 1, interval: '10s', queue: 1 };
    await take(limit);
    at(-4000);
    expect(await take(limit)).toMatchObject({ allowed: true, delayMs: 10_000 });
    expect(await take(limit)).toMatchObject({ allowed: false, retryAfterMs: 14_000 });
  });

  it('a tick of a millisecond rounds the time of a request down', async () => {
    // 3 and a year have no divisor that makes them small enough for microseconds.
    const limit: AlgorithmOptions = { algo: 'gcra', rate: 7, interval: '365d', burst: 1000 };
    expect(compile(limit).parameters).toMatchObject({ scale: { tick: 1000 } });
    at(0.9);
    await take(limit, 1000);
    const { retryAfterMs } = await peek(limit, 1000);
    at(0);
    expect((await peek(limit, 1000)).retryAfterMs - retryAfterMs).toBeLessThanOrEqual(1);
    at(retryAfterMs + 0.999);
    expect(await peek(limit, 1000)).toMatchObject({ allowed: true });
  });

  it('a longer interval of a sliding log brings back what was not cut off yet', async () => {
    const limit = { algo: 'sliding-log', rate: 3, interval: '10s' } as const;
    const longer = { ...limit, interval: '1m' } as const;
    await take(limit);
    at(9000);
    await take(limit);
    at(15_000);
    expect(await peek(limit)).toMatchObject({ remaining: 2 });
    expect(await peek(longer)).toMatchObject({ remaining: 1 });
    await take(limit);
    expect(await peek(longer)).toMatchObject({ remaining: 1 });
  });

  it("a stretch holds one refill more with 'intervally'", async () => {
    const limit: AlgorithmOptions = { algo: 'token-bucket', rate: 5, interval: '10s', refill: 'intervally' };
    await take(limit, 1);
    at(9999);
    await take(limit, 4);
    at(10_000);
    expect(await take(limit, 5)).toMatchObject({ allowed: true });
    // 9 units in a millisecond: a burst of 5, no whole interval, and a refill.
  });
});
