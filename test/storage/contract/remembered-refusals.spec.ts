import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type Check, CompiledLimit, type LimitSettings } from '../../../lib/testing/store/index.js';
import { failingAnswer } from '../../support/limits/failing-answer.js';
import { LocalChannel } from '../../support/limits/local-channel.js';
import { startRemembering } from '../../support/limits/remembering.js';
import type { SharedStore } from '../../support/redis/shared-store.js';
import { remembering } from '../../support/limits/layers.js';

const IDENTITY = 'user:1';

let now = 0;

function limitOf(name: string, settings: Partial<LimitSettings> = {}, interval = 60_000): CompiledLimit {
  const options = { algo: 'sliding-log', rate: 2, interval } as const;
  return new CompiledLimit(options, { location: 'test', name, remembersRefusals: true, ...settings });
}

const limit = limitOf('limit');

const entryOf = (limit: CompiledLimit, cost = 1, identity = IDENTITY) => ({ limit, identity, cost });

describe('a store that remembers refusals', () => {
  let shared: SharedStore;
  let channel: LocalChannel;
  let store: ReturnType<typeof remembering>;

  beforeEach(async () => {
    now = 1000;
    jest.spyOn(performance, 'now').mockImplementation(() => now);
    ({ shared, channel, store } = await startRemembering());
  });
  afterEach(async () => {
    await store.close();
    jest.restoreAllMocks();
  });

  async function ask(limits: readonly CompiledLimit[], more: Omit<Check, 'entries'> & { cost?: number } = {}) {
    const { cost = 1, ...rest } = more;
    const [decisions] = await store.check([{ entries: limits.map((limit) => entryOf(limit, cost)), ...rest }]);
    return decisions!;
  }

  /** Uses a limit up, and has its refusal remembered. */
  async function refuse(...limits: CompiledLimit[]): Promise<void> {
    await shared.check([{ entries: limits.map((limit) => entryOf(limit, 2)) }]);
    expect((await ask(limits)).some(({ allowed }) => !allowed)).toBe(true);
    shared.checks.length = 0;
  }

  /** Whether the next check of a limit reaches the store. */
  async function isAsked(...limits: CompiledLimit[]): Promise<boolean> {
    const calls = shared.checks.length;
    await ask(limits);
    return shared.checks.length > calls;
  }

  it('answers them until their wait is over, with the wait that is left', async () => {
    await refuse(limit);
    now += 0.4;
    expect(await ask([limit])).toMatchObject([
      { allowed: false, source: 'cache', remaining: 0, retryAfterMs: 60_000, resetAfterMs: 60_000 },
    ]);
    now += 19_999.7;
    expect(await ask([limit])).toMatchObject([{ source: 'cache', retryAfterMs: 40_000, resetAfterMs: 40_000 }]);
    now = 1000 + 59_999.9;
    expect(await ask([limit])).toMatchObject([{ source: 'cache', retryAfterMs: 1 }]);
    expect(shared.checks).toHaveLength(0);
    now = 1000 + 60_000;
    expect(await ask([limit])).toMatchObject([{ allowed: true, source: 'redis' }]);
  });

  it('asks when the first wait of several is over', async () => {
    const [short, shadow] = [limitOf('short', { shadow: true }, 10_000), limitOf('long')];
    await refuse(short, shadow);
    now += 9999;
    expect(await isAsked(short, shadow)).toBe(false);
    now += 1;
    expect(await isAsked(short, shadow)).toBe(true);
  });

  it('says of a limit that has started anew meanwhile that nothing is to be waited for', async () => {
    const [short, long] = [limitOf('short', {}, 10_000), limitOf('long')];
    await shared.check([{ entries: [entryOf(long, 2), entryOf(short)] }]);
    await ask([short, long]);
    now += 20_000;
    expect(await ask([short, long])).toMatchObject([
      { allowed: true, source: 'cache', retryAfterMs: 0, resetAfterMs: 0 },
      { allowed: false, source: 'cache', retryAfterMs: 40_000 },
    ]);
  });

  it('counts their wait from when it asked', async () => {
    await shared.check([{ entries: [entryOf(limit, 2)] }]);
    shared.meanwhile = () => void (now += 30_000);
    expect(await ask([limit])).toMatchObject([{ allowed: false, retryAfterMs: 60_000 }]);
    shared.meanwhile = () => undefined;
    now += 29_999;
    expect(await isAsked(limit)).toBe(false);
    now += 1;
    expect(await isAsked(limit)).toBe(true);
  });

  it('forgets those whose wait was over when they came', async () => {
    await shared.check([{ entries: [entryOf(limit, 2)] }]);
    shared.meanwhile = () => void (now += 60_000);
    await ask([limit]);
    shared.meanwhile = () => undefined;
    now -= 30_000;
    expect(await isAsked(limit)).toBe(true);
  });

  it('keeps what it remembers, whatever the caller makes of its answer', async () => {
    await shared.check([{ entries: [entryOf(limit, 2)] }]);
    for (const decision of await ask([limit])) Object.assign(decision, { allowed: true, remaining: 7 });
    for (const decision of await ask([limit])) Object.assign(decision, { allowed: true, remaining: 7 });
    expect(await ask([limit])).toMatchObject([{ allowed: false, remaining: 0, source: 'cache' }]);
  });

  it('tells checks apart by identity, cost, limits and their number', async () => {
    const other = limitOf('other');
    await refuse(limit);
    await store.check([{ entries: [entryOf(limit, 1, 'user:2')] }]);
    expect(shared.checks).toHaveLength(1);
    await ask([limit], { cost: 2 });
    expect(shared.checks).toHaveLength(2);
    expect(await isAsked(limit, other)).toBe(true);
    expect(await isAsked(other)).toBe(true);
    expect(await isAsked(limit)).toBe(false);
  });

  it('takes a limit whose parameters were changed for another one', async () => {
    const other = limitOf('other');
    await refuse(other, limit);
    expect(await isAsked(other, limitOf('limit'))).toBe(true);
    expect(await isAsked(other, limit)).toBe(true);
  });

  it('asks for those who only look, and remembers nothing of them', async () => {
    await shared.check([{ entries: [entryOf(limit, 2)] }]);
    for (let looks = 1; looks < 4; looks++) {
      expect(await ask([limit], { peek: true })).toMatchObject([{ allowed: false, source: 'redis' }]);
    }
    expect(shared.checks).toHaveLength(4);
    expect(await isAsked(limit)).toBe(true);
  });

  it('remembers nothing that is decided while the store fails', async () => {
    shared.source = () => 'fallback';
    await refuse(limit);
    expect(await isAsked(limit)).toBe(true);
  });

  it.each<[string, CompiledLimit[]]>([
    ['limits in shadow mode', [limitOf('shadow', { shadow: true })]],
    ['limits whose units come back otherwise', [limitOf('own', { remembersRefusals: false })]],
    ['checks with such a limit', [limit, limitOf('own', { remembersRefusals: false })]],
  ])('remembers nothing of %s', async (_, limits) => {
    await refuse(...limits);
    expect(await isAsked(...limits)).toBe(true);
  });

  it('remembers what never fits, unless that begins a block each time', async () => {
    const blocking = limitOf('blocking', { blockFor: 1_000_000 });
    for (const [asked, calls] of [
      [[limit], 1],
      [[limit, blocking], 2],
    ] as const) {
      shared.checks.length = 0;
      for (let times = 0; times < 2; times++) await ask(asked, { cost: 3 });
      expect(shared.checks).toHaveLength(calls);
    }
    now += 1e9;
    expect(await ask([limit], { cost: 3 })).toMatchObject([{ source: 'cache', retryAfterMs: Infinity }]);
  });

  it('remembers refusals of a limit that blocks', async () => {
    const blocking = limitOf('blocking', { blockFor: 90_000_000 });
    await refuse(blocking);
    now += 89_999;
    expect(await isAsked(blocking)).toBe(false);
    now += 1;
    expect(await isAsked(blocking)).toBe(true);
  });

  it('forgets all when another instance gives something back, or may have', async () => {
    await refuse(limit);
    await channel.publish('', now);
    expect(await isAsked(limit)).toBe(true);
    expect(await isAsked(limit)).toBe(false);
    channel.connect();
    expect(await isAsked(limit)).toBe(true);
  });

  it('remembers nothing that was asked before something came back', async () => {
    await shared.check([{ entries: [entryOf(limit, 2)] }]);
    shared.meanwhile = () => channel.connect();
    await ask([limit]);
    shared.meanwhile = () => undefined;
    expect(await isAsked(limit)).toBe(true);
  });

  it('remembers nothing while it does not hear the others', async () => {
    await refuse(limit);
    channel.disconnect();
    for (let times = 0; times < 2; times++) expect(await isAsked(limit)).toBe(true);
    channel.connect();
    await ask([limit]);
    expect(await isAsked(limit)).toBe(false);
    const deaf = remembering(shared, new LocalChannel());
    await deaf.check([{ entries: [entryOf(limit)] }]);
    expect(await deaf.check([{ entries: [entryOf(limit)] }])).toMatchObject([[{ source: 'redis' }]]);
  });

  it('forgets all when it is closed', async () => {
    await refuse(limit);
    await store.close();
    expect(await isAsked(limit)).toBe(true);
  });

  it('tells an answer that throws so', async () => {
    await refuse(limit);
    const told: unknown[] = [];
    store.decide({ entries: [entryOf(limit)] }, failingAnswer(told));
    expect(told).toEqual([new Error('an exporter failed')]);
    expect(shared.checks).toHaveLength(0);
  });
});
