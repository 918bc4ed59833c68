import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { RedisStore } from '../../../lib/index.js';
import { CompiledLimit, type LimitSettings } from '../../../lib/testing/store/index.js';
import { everyAlgorithm, five } from '../contract/operations/limits.js';
import { withOwnRedis } from '../../support/redis/own-redis.js';
import { ask, keyOf, ManualClock } from '../../support/limits/stores.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

const prefix = 'blocks';
const identity = 'user:42';
const MINUTE = 60_000_000;
const HOUR = 60 * MINUTE;
/** What keeps no string, and its block in a key of its own. */
const apart = new Set<string>(['sliding-log', 'concurrency']);
const ENVELOPE_BYTES = 17;

let redis: Redis;
withOwnRedis((client) => (redis = client));

let clock: ManualClock;
let store: RedisStore;
/** By the clock of the server, when the test began. */
let began: number;
beforeEach(async () => {
  await redis.flushall();
  began = await serverMs();
  clock = new ManualClock();
  clock.micros = Date.parse('2026-09-21T10:00:00Z') * 1000;
  store = new RedisStore(redis, { clock: { now: clock.now, slackMs: 0 }, prefix, timeoutMs: PATIENCE_MS });
});

async function serverMs(): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1000 + Number(micros) / 1000;
}

const take = (limit: CompiledLimit, cost = 1) => ask(store, limit, { identity, cost });

/** The time to live is what it was set to, less what has passed since on the server's clock. */
async function expectToLive(key: string, ms: number): Promise<void> {
  const left = await redis.pttl(key);
  expect(left).toBeLessThanOrEqual(ms);
  expect(left).toBeGreaterThan(ms - ((await serverMs()) - began) - 2);
}

/** What stands in a key before the value, and the value. */
async function envelopeIn(key: string) {
  const stored = await redis.getBuffer(key);
  if (stored === null) return undefined;
  const length = stored.readDoubleLE(9);
  const offences = (length % 1) * 256;
  const value = stored.toString('hex', ENVELOPE_BYTES);
  return { mark: stored[0], until: stored.readDoubleLE(1), length: Math.floor(length), offences, value };
}

describe.each(everyAlgorithm)('the stored block of %s', (algo) => {
  const make = (name: string, settings: Partial<LimitSettings>) =>
    new CompiledLimit(five[algo], { location: 'test', name, ...settings });
  const steps = make('steps', { escalation: { steps: [MINUTE, 10 * MINUTE], forgetAfter: HOUR } });
  const single = make('single', { blockFor: MINUTE });
  const keyFor = (limit: CompiledLimit) => keyOf(prefix, { limit, identity }) + (apart.has(algo) ? ':block' : '');

  it('is as without steps, but for the offences behind the point of its length', async () => {
    const start = clock.now();
    for (const limit of [steps, single]) {
      await take(limit, 2);
      await take(limit, 6);
    }
    const plain = await envelopeIn(keyFor(single));
    expect(plain).toMatchObject({ mark: 255, until: start + MINUTE, length: MINUTE, offences: 0 });
    expect(await envelopeIn(keyFor(steps))).toEqual({ ...plain, offences: 1 });
  });

  it('is one of no length once it is over, before the same value', async () => {
    for (const limit of [steps, single]) await take(limit, 6);
    clock.advanceMs(60_000);
    const end = clock.now();
    for (const limit of [steps, single]) await take(limit, 2);
    const past = await envelopeIn(keyFor(steps));
    expect(past).toMatchObject({ mark: 255, until: end, length: 0, offences: 1 });
    if (!apart.has(algo)) {
      const stored = await redis.getBuffer(keyFor(single));
      const plain = stored!.toString('hex');
      // What a value says of its key's time to live differs.
      expect(past!.value).toHaveLength(plain.length);
      expect(past!.value.slice(0, 16)).toBe(plain.slice(0, 16));
    } else {
      expect(await redis.exists(keyFor(single))).toBe(0);
    }
  });

  it('lives until its offences are forgotten, however often the counter is charged', async () => {
    await take(steps, 6);
    await expectToLive(keyFor(steps), 61 * 60_000);
    clock.advanceMs(60_000);
    await take(steps);
    await expectToLive(keyFor(steps), 60 * 60_000);
    if (apart.has(algo)) return;
    clock.advanceMs(30 * 60_000);
    await take(steps);
    await expectToLive(keyFor(steps), 30 * 60_000);
    clock.advanceMs(30 * 60_000);
    await take(steps);
    expect((await redis.getBuffer(keyFor(steps)))![0]).not.toBe(255);
  });

  it('goes with an unblock and with a reset', async () => {
    await take(steps, 6);
    await store.block({ limit: steps, identity }, 0);
    expect(await redis.exists(keyFor(steps))).toBe(0);
    await take(steps, 6);
    await store.reset([{ limit: steps, identity }]);
    expect(await redis.keys('*')).toEqual([]);
  });

  it('is read without steps, and written without offences then', async () => {
    const same = make('steps', { blockFor: MINUTE });
    const start = clock.now();
    await take(steps, 6);
    const refused = await take(same);
    expect(refused).toMatchObject({ allowed: false, retryAfterMs: 60_000 });
    expect(await envelopeIn(keyFor(steps))).toMatchObject({ offences: 1 });
    await store.refund([{ limit: same, identity, units: 1 }]);
    expect(await envelopeIn(keyFor(steps))).toMatchObject({ until: start + MINUTE, length: MINUTE, offences: 0 });
    expect(await take(steps)).toMatchObject({ allowed: false, retryAfterMs: 60_000, offences: 0 });
  });

  it('of a limit without steps counts with steps as a block by hand', async () => {
    const same = make('steps', { blockFor: MINUTE });
    await take(same, 6);
    expect(await take(steps)).toMatchObject({ allowed: false, retryAfterMs: 60_000, offences: 0 });
    clock.advanceMs(60_000);
    expect(await take(steps, 6)).toMatchObject({ offences: 1, resetAfterMs: 60_000 });
  });
});
