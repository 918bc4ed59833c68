import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { type AlgorithmOptions, RedisStore } from '../../lib/index.js';
import { ensureBuilt } from '../support/processes/built.js';
import { bundledWorker } from '../support/processes/bundled-worker.js';
import { ask, compile, connectRedis, freshPrefix } from '../support/limits/stores.js';
import { waitingFor } from '../support/limits/waiting.js';
import { PATIENCE_MS } from '../support/redis/patience.mjs';

const worker = bundledWorker('hold-worker.mjs');
const identity = 'org:1';
const SECOND = 1e6;

describe('a process that is killed while it holds units', () => {
  let redis: Redis;
  beforeAll(ensureBuilt);
  beforeAll(async () => {
    redis = await connectRedis();
  });
  afterAll(() => redis.disconnect());

  it.each(['charge', 'release'] as const)('leaves them held until the hold lapses: %s', async (onLapse) => {
    const limit = { algo: 'budget', limit: 10, period: 'year', hold: '1m', onLapse } satisfies AlgorithmOptions;
    const [prefix, name, key] = [freshPrefix(), 'one', identity];
    const input = { url: process.env['TEST_REDIS_URL'], prefix, name, limit, key };
    const script = await worker();
    const workers: ChildProcess[] = [];
    const ids: string[] = [];
    try {
      for (const cost of [6, 3]) workers.push(fork(script, [JSON.stringify({ ...input, cost })], { execArgv: [] }));
      const told = await Promise.all(workers.map((child) => once(child, 'message') as Promise<[{ id: string }]>));
      ids.push(...told.map(([{ id }]) => id));
    } finally {
      for (const child of workers) {
        child.kill('SIGKILL');
        if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      }
    }
    // By the server's own clock, and then by one that is past all holds.
    const stores = [undefined, { now: () => Date.now() * 1000 + 61 * SECOND, slackMs: 3_600_000 }].map(
      (clock) => new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS, ...(clock && { clock }) }),
    ) as [RedisStore, RedisStore];
    const compiled = compile(limit, name);
    const left = async (store: RedisStore) => (await ask(store, compiled, { identity, peek: true })).remaining;
    const settle = (store: RedisStore, id: string, actual: number) =>
      waitingFor(store, limit).limiter.settle(identity, id, actual);
    const [now, later] = stores;
    expect(await left(now)).toBe(1);
    await expect(ask(now, compiled, { identity, cost: 2 })).resolves.toMatchObject({ allowed: false });
    // Another process knows what one of them used.
    await Promise.all([settle(now, ids[0]!, 2), settle(now, ids[0]!, 2)]);
    expect(await left(now)).toBe(5);
    expect(await left(later)).toBe(onLapse === 'charge' ? 5 : 8);
    await expect(ask(later, compiled, { identity, cost: 1 })).resolves.toMatchObject({ allowed: true });
    await settle(later, ids[1]!, 1);
    await settle(later, ids[1]!, 1);
    expect(await left(later)).toBe(6);
  });
});
