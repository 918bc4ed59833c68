/**
 * One of several processes that ask Redis for the same limits, one after the other, with the built package. Its input says which,
 * how often and with how many requests in flight; its result is how many each allowed.
 */
import { Redis } from 'ioredis';
import { CompiledLimit } from '../../../build/engine/limits/compiled-limit.js';
import { RedisStore } from '../../../build/storage/stores/redis/redis.store.js';
import { runTask } from './process-task.mjs';
import { PATIENCE_MS } from '../redis/patience.mjs';

await runTask(async ({ url, prefix, limits, requests, inFlight }, startTogether) => {
  const redis = new Redis(url, { lazyConnect: true });
  const store = new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS, ownsClient: true });
  await store.open();
  const allowed = limits.map(() => 0);
  for (const [index, options] of limits.entries()) {
    const limit = new CompiledLimit(options, { location: 'worker', name: `limit-${index}` });
    let left = requests;
    const lane = async () => {
      while (left-- > 0) {
        const [[decision]] = await store.check([{ entries: [{ limit, identity: 'global', cost: 1 }] }]);
        if (decision.allowed) allowed[index] += 1;
      }
    };
    await startTogether();
    await Promise.all(Array.from({ length: inFlight }, lane));
  }
  await store.close();
  return allowed;
});
