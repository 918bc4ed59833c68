/**
 * One of several processes that ask Redis for limits within others, with the built package. Its input says which levels, the root first,
 * whose counters, how often and with how many requests in flight; its result is how many units each counter was charged.
 */
import { Redis } from 'ioredis';
import { featureTerms } from '../../../build/storage/features/index.js';
import { CompiledLimit } from '../../../build/engine/limits/compiled-limit.js';
import { identityWithin } from '../../../build/engine/limits/hierarchy.js';
import { RedisStore } from '../../../build/storage/stores/redis/redis.store.js';
import { runTask } from './process-task.mjs';
import { PATIENCE_MS } from '../redis/patience.mjs';

await runTask(async ({ url, prefix, levels, paths, requests, inFlight }, startTogether) => {
  const redis = new Redis(url, { lazyConnect: true });
  const store = new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS, ownsClient: true });
  const limits = levels.map(
    ({ options, ...rest }, index) =>
      new CompiledLimit(options, {
        location: 'worker',
        name: `level-${index}`,
        parent: index > 0 ? `level-${index - 1}` : undefined,
        features: featureTerms(rest, 'worker'),
      }),
  );
  const chains = paths.map((path) => {
    const entries = [];
    for (const [index, key] of path.entries()) {
      const identity = index === 0 ? key : identityWithin(entries[0], key);
      entries.unshift({ limit: limits[index], identity, cost: 1 });
    }
    return { entries, places: path.map((_, index) => path.slice(0, index + 1).join('/')) };
  });
  await store.open();
  await startTogether();
  const charged = {};
  let asked = 0;
  const lane = async () => {
    while (asked < requests) {
      const { entries, places } = chains[asked++ % chains.length];
      const [decisions] = await store.check([{ entries }]);
      if (!decisions.every(({ allowed }) => allowed)) continue;
      for (const place of places) charged[place] = (charged[place] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  await store.close();
  return charged;
});
