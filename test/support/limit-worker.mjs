/**
 * One of several processes that ask Redis for the same limit, with the built package. Its input says which, how often and with
 * how many requests in flight; its result is how many were allowed.
 */
import { Redis } from 'ioredis';
import { CompiledLimit } from '../../dist/limits/compiled-limit.js';
import { RedisStore } from '../../dist/stores/redis/redis.store.js';
import { runTask } from './process-task.mjs';

await runTask(async ({ url, prefix, options, requests, inFlight }, startTogether) => {
  const redis = new Redis(url, { lazyConnect: true });
  const store = new RedisStore(redis, { prefix, timeoutMs: 10_000, ownsClient: true });
  const limit = new CompiledLimit(options, { location: 'worker', name: 'shared' });
  await store.open();
  await startTogether();
  let left = requests;
  let allowed = 0;
  const lane = async () => {
    while (left-- > 0) {
      const [[decision]] = await store.check([{ entries: [{ limit, identity: 'global', cost: 1 }] }]);
      if (decision.allowed) allowed += 1;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  await store.close();
  return allowed;
});
