/**
 * One of several processes that ask Redis for the same limits on a clock that is set, with the built package. Its input says what
 * the clock shows in each phase; its result is how many of each limit were allowed in each.
 */
import { Redis } from 'ioredis';
import { CompiledLimit } from '../../../build/engine/limits/compiled-limit.js';
import { RedisStore } from '../../../build/storage/stores/redis/redis.store.js';
import { runTask } from './process-task.mjs';
import { PATIENCE_MS } from '../redis/patience.mjs';

await runTask(async ({ url, prefix, limits, phases, requests }, startTogether) => {
  let micros = phases[0];
  const clock = { now: () => micros, slackMs: 3_600_000 };
  const redis = new Redis(url, { lazyConnect: true });
  const store = new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS, ownsClient: true, clock });
  const compiled = limits.map(
    (options, index) => new CompiledLimit(options, { location: 'worker', name: `limit-${index}` }),
  );
  await store.open();
  const allowed = [];
  for (const now of phases) {
    await startTogether();
    micros = now;
    const counts = compiled.map(() => 0);
    const ask = async (limit, index) => {
      const [[decision]] = await store.check([{ entries: [{ limit, identity: 'global', cost: 1 }] }]);
      if (decision.allowed) counts[index] += 1;
    };
    for (let request = 0; request < requests; request++) await Promise.all(compiled.map(ask));
    allowed.push(counts);
  }
  await store.close();
  return allowed;
});
