import { afterEach, describe, expect, it } from '@jest/globals';
import type { TestingModule } from '@nestjs/testing';
import { startLimiters } from '../../integrations/outbound/upstream.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';

const define = {
  gcra: { algo: 'gcra', rate: 20, interval: '1s', burst: 1 },
  'token-bucket': { algo: 'token-bucket', rate: 20, interval: '1s', burst: 1 },
  'leaky-bucket': { algo: 'leaky-bucket', rate: 20, interval: '1s', queue: 500 },
  slow: { algo: 'gcra', rate: 1, interval: '1m', burst: 1 },
} as const;

/** What a process leaves taken that is killed while calls of it wait: what its line has taken of the store by then. */
describe('places that calls have taken while they wait', () => {
  const apps: TestingModule[] = [];
  afterEach(async () => {
    for (const app of apps.splice(0)) await app.close();
  });

  it.each([
    ['gcra', 200, 1050],
    ['token-bucket', 200, 1050],
    ['leaky-bucket', 200, 1050],
    ['slow', 60, 120_000],
  ] as const)(
    'of %s are those of a second, or one: %d calls keep others out for %d ms at most',
    async (name, count, ms) => {
      const options = { define, redis: process.env['TEST_REDIS_URL']!, prefix: freshPrefix() } as const;
      const [waiting, other] = [await startLimiters(options), await startLimiters(options)];
      apps.push(waiting.app, other.app);
      const limiter = waiting.limiters.for(name);
      await limiter.consume('a');
      let waitingNow = 0;
      const wait = () => limiter.acquire('a').then(() => waitingNow--);
      const looks: number[] = [];
      const look = async () => {
        // Always so many wait, however long that takes.
        for (; waitingNow < count; waitingNow++) void wait().catch(() => undefined);
        const { resetAfterMs } = await other.limiters.for(name).peek('a');
        looks.push(resetAfterMs);
        return resetAfterMs > (name === 'slow' ? 61_000 : 200);
      };
      await until(look);
      await look();
      expect(Math.max(...looks)).toBeLessThanOrEqual(ms);
    },
  );
});
