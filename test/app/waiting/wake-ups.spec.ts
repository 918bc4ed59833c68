import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { TestingModule } from '@nestjs/testing';
import {
  type LeasedDecision,
  type LimiterService,
  type LimitDefinition,
  MemoryStore,
  RateLimitTimeoutError,
  RateLimitWaitersError,
} from '../../../lib/index.js';
import type { OutboundLimiter } from '../../../lib/integrations/outbound/index.js';
import type { Check, ReserveEntry } from '../../../lib/testing/store/index.js';
import { startLimiters, Upstream } from '../../integrations/outbound/upstream.js';
import { until } from '../../support/time/until.js';
import { stopTimersFrom } from '../../support/time/long-timers.js';
import { outcomeOf } from '../../support/limits/waiting.js';

const KEYS = ['key-a', 'key-b', 'key-c'];
const key = () => undefined;
const windows = { algo: 'fixed-window', rate: 1, interval: '1h' } as const;
const other = { ...windows, rate: 100 } as const;
const slots = { algo: 'concurrency', limit: 1, ttl: '1h' } as const;

/** Counts how often it is asked for units, by the name of the limit and the identity. */
class CountingStore extends MemoryStore {
  readonly asked = new Map<string, number>();

  override check(checks: readonly Check[]) {
    for (const { entries } of checks) for (const entry of entries) this.count(entry);
    return super.check(checks);
  }

  override reserve(entry: ReserveEntry) {
    this.count(entry);
    return super.reserve(entry);
  }

  private count({ limit, identity }: Pick<ReserveEntry, 'limit' | 'identity'>): void {
    const counter = `${limit.name} ${identity}`;
    this.asked.set(counter, (this.asked.get(counter) ?? 0) + 1);
  }
}

/** Waits for units of the limit `one` of a key. */
type Wait = (limiters: LimiterService, key: string, url: string) => Promise<unknown>;

const acquire: Wait = (limiters, key) => limiters.for('one').acquire(key);
const acquireLevels: Wait = (limiters, key) => limiters.for('user').acquire('u', { within: { one: key } });
const fetchBoth: Wait = (limiters, key, url) =>
  outbound
    .fetch(['one', 'other'], { key })(url)
    .then((response) => response.text());

const kinds: [string, LimitDefinition, Wait][] = [
  ['acquire, of a window', windows, acquire],
  ['acquire, of slots', slots, acquire],
  ['acquire, of a level', windows, acquireLevels],
  ['acquire, of a level with slots', slots, acquireLevels],
  ['fetch, of a window', windows, fetchBoth],
  ['fetch, of slots', slots, fetchBoth],
];

let app: TestingModule;
let limiters: LimiterService;
let outbound: OutboundLimiter;
let store: CountingStore;
let upstream: Upstream;

beforeEach(async () => {
  store = new CountingStore();
  upstream = await Upstream.start();
});
let longTimers: { mockRestore(): void } | undefined;
afterEach(async () => {
  longTimers?.mockRestore();
  longTimers = undefined;
  await app.close();
  await upstream.close();
});

async function start(define: Record<string, LimitDefinition>, options: object = {}): Promise<void> {
  ({ app, limiters, outbound } = await startLimiters({ store, define, ...options }));
}

/** Turns of the event loop in which all that is asked at once has been answered. */
async function turns(): Promise<void> {
  for (let round = 0; round < 10; round++) await turn();
}

describe.each(kinds)('calls that wait: %s', (_, one, wait) => {
  it.each(['a refund or a release', 'a reset', 'an unblock'])(
    'ask again after %s of their counter only',
    async (what) => {
      await start({ one: { ...one, key }, other, user: { ...other, key, within: 'one' } });
      const limiter = limiters.for('one');
      const [{ lease }] = (await Promise.all(KEYS.map((each) => limiter.consume(each)))) as [LeasedDecision];
      if (what === 'an unblock') for (const each of KEYS) await limiter.block(each, '1h');
      // Waiting calls look for free slots less and less often. From pauses of 400 ms on, only what happens wakes them.
      longTimers = stopTimersFrom(400);
      const outcomes = KEYS.map((each) => outcomeOf(wait(limiters, each, upstream.url)));
      const asked = one.algo === 'concurrency' ? 6 : 2;
      await until(() => KEYS.every((each) => (store.asked.get(`one ${each}`) ?? 0) >= asked));
      await turns();
      store.asked.clear();
      if (what === 'a reset') await limiter.reset('key-a');
      else if (what === 'an unblock') await limiter.unblock('key-a');
      else await (lease === undefined ? limiter.refund('key-a', 1) : lease.release());
      await turns();
      const counters = [...store.asked.keys()];
      expect(counters).toContain('one key-a');
      expect(counters.filter((counter) => /key-[bc]/.test(counter))).toEqual([]);
      if (what !== 'an unblock') await until(() => outcomes[0]!.value !== undefined);
      expect(outcomes.slice(1)).toEqual([{}, {}]);
    },
  );
});

describe('calls of several limits', () => {
  it('are woken by those that refused them, not by the others', async () => {
    await start({ one: { ...windows, rate: 2 }, other });
    await Promise.all([1, 2].map(() => outbound.fetch(['one', 'other'])(upstream.url)));
    const waiting = outcomeOf(outbound.fetch(['one', 'other'])(upstream.url));
    await until(() => store.asked.get('one global') === 3);
    await turns();
    store.asked.clear();
    await limiters.for('other').refund('global', 1);
    await turns();
    expect([...store.asked]).toEqual([]);
    await limiters.for('one').refund('global', 1);
    await until(() => waiting.value !== undefined);
  });

  it('go on at once when the rate of one of them changes', async () => {
    await start({ one: { ...windows, key }, user: { ...other, key, within: 'one' } });
    const within = { one: 'o' };
    await limiters.for('user').consume('u', { within });
    const waiting = outcomeOf(limiters.for('user').acquire('u', { within }));
    await turns();
    await limiters.setRate('one', { rate: 5 });
    await until(() => waiting.value !== undefined);
  });

  it('are refused at once if they have no time, also behind others', async () => {
    await start({ one: { ...slots, key }, user: { ...slots, limit: 9, key, within: 'one' }, own: slots });
    const within = { one: 'o' };
    const user = limiters.for('user');
    await user.consume('u', { within });
    const patient = outcomeOf(user.acquire('u', { within }));
    await turns();
    await expect(user.acquire('u', { within, timeout: 0 })).rejects.toThrow(RateLimitTimeoutError);
    await limiters.for('own').consume('global');
    const call = outcomeOf(outbound.fetch('own')(upstream.url));
    await until(() => store.asked.get('own global')! >= 2);
    await expect(outbound.fetch('own', { timeout: 0 })(upstream.url)).rejects.toThrow(RateLimitTimeoutError);
    expect([patient, call]).toEqual([{}, {}]);
  });
});

describe('calls to upstreams that wait', () => {
  it('are asked anew when a list decides', async () => {
    await start({ one: windows });
    await limiters.for('one').consume('tenant:acme');
    const waiting = ['tenant:acme', 'tenant:other'].map((key) =>
      outcomeOf(outbound.fetch('one', { key })(upstream.url)),
    );
    await until(() => waiting[1]!.value !== undefined);
    await turns();
    await limiters.deny({ identity: 'tenant:acme' });
    await until(() => waiting[0]!.reason !== undefined);
    expect(String(waiting[0]!.reason)).toContain('a list denies the key');
  });

  it('count among those of all keys', async () => {
    await start({ one: windows }, { maxWaiters: 1 });
    for (let key = 0; key < 10; key++) {
      await limiters.for('one').consume(`${key}`);
      outcomeOf(outbound.fetch('one', { key: `${key}` })(upstream.url));
    }
    await until(() => store.asked.get('one 9') === 2);
    await expect(limiters.for('one').acquire('other')).rejects.toThrow(RateLimitWaitersError);
    await expect(outbound.fetch('one', { key: 'other' })(upstream.url)).rejects.toThrow(RateLimitWaitersError);
  });

  it('go before one that is sent again later, by their priority', async () => {
    const answers = [503, 200, 200];
    await upstream.close();
    upstream = await Upstream.start((_, response) => {
      const status = answers.shift()!;
      response.writeHead(status, status === 503 ? { 'retry-after': '3600' } : {}).end();
    });
    await start({ one: other });
    const fetchOne = outbound.fetch('one', {
      retry: { attempts: 2 },
      priority: ({ url }) => (url.endsWith('/click') ? 1 : 0),
    });
    const end = new AbortController();
    const sync = outcomeOf(fetchOne(`${upstream.url}/sync`, { signal: end.signal }));
    await until(() => answers.length === 2);
    await turns();
    const behind = outcomeOf(fetchOne(`${upstream.url}/sync`));
    expect((await fetchOne(`${upstream.url}/click`)).status).toBe(200);
    expect([sync, behind]).toEqual([{}, {}]);
    end.abort(new Error('enough'));
    await until(() => behind.value !== undefined);
  });
});
