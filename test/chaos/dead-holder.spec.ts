import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import type { ConcurrencyOptions } from '../../lib/algorithms/concurrency.js';
import { CompiledLimit } from '../../lib/algorithms/limit.js';
import { RedisStore } from '../../lib/stores/redis.store.js';
import { ask, connectRedis, freshPrefix } from '../support/stores.js';

const HOLDER = fileURLToPath(new URL('../support/lease-holder.mjs', import.meta.url));

it('what a process held that was killed is free after its time to live, and not before', async () => {
  const ttl = 600;
  const prefix = freshPrefix();
  const options: ConcurrencyOptions = { algo: 'concurrency', limit: 2, ttl };
  const redis = await connectRedis();
  const store = new RedisStore(redis, { prefix, timeoutMs: 5000 });
  const limit = new CompiledLimit(options, { place: 'test', name: 'shared' });
  const input = JSON.stringify({ url: process.env['TEST_REDIS_URL'], prefix, options });
  const holder = fork(HOLDER, [input], { execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  try {
    await once(holder, 'message');
    // It lives on: its lease is renewed.
    await sleep(ttl * 2);
    expect(await ask(store, limit, { identity: 'global' })).toMatchObject({ allowed: false, remaining: 0 });
    const exited = once(holder, 'exit');
    holder.kill('SIGKILL');
    await exited;
    const { allowed, retryAfterMs } = await ask(store, limit, { identity: 'global' });
    expect(allowed).toBe(false);
    expect(retryAfterMs).toBeLessThanOrEqual(ttl);
    await sleep(retryAfterMs);
    expect(await ask(store, limit, { identity: 'global', cost: 2 })).toMatchObject({ allowed: true });
  } finally {
    holder.kill('SIGKILL');
    redis.disconnect();
  }
});
