import { afterEach, beforeEach, describe, it, jest } from '@jest/globals';
import { createRequire } from 'node:module';
import type { ThrottlerStorageService } from '@nestjs/throttler';
import fc from 'fast-check';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { type AlgorithmOptions, MemoryStore } from '../../lib/index.js';
import { CompiledLimit } from '../../lib/testing/store/index.js';
import { expectEqual, propertyRuns } from '../support/limits/property-runs.js';
import { ask } from '../support/limits/stores.js';

/** Their counter as it is. */
const throttler = createRequire(import.meta.url)('@nestjs/throttler/dist/throttler.service.js') as {
  ThrottlerStorageService: new () => ThrottlerStorageService;
};

const RUNS = propertyRuns(100);

const limits = fc.record({
  rate: fc.integer({ min: 1, max: 5 }),
  seconds: fc.integer({ min: 1, max: 100 }),
  blockSeconds: fc.integer({ min: 1, max: 200 }),
});

/** Milliseconds until the next request; some come right when a block or an interval is over, or just before. */
const steps = fc.array(
  fc.oneof(fc.integer({ min: 1, max: 1500 }), fc.integer({ min: 1, max: 100_000 }), fc.constantFrom('wait', 'almost')),
  { minLength: 3, maxLength: 40 },
);

type Step = number | string;

/** What both sides say: whether the request passed, and if not how many milliseconds there are to wait. */
interface Answer {
  allowed: boolean;
  wait: number;
}

async function compare(
  options: AlgorithmOptions,
  blockMs: number,
  history: Step[],
  peer: () => Promise<Answer>,
  unitMs = 1,
) {
  const store = new MemoryStore();
  const limit = new CompiledLimit(options, { location: 'test', blockFor: blockMs * 1000 });
  let wait = 0;
  for (const step of history) {
    const forward = step === 'wait' ? wait : step === 'almost' ? wait - 1 : (step as number);
    jest.advanceTimersByTime(Math.max(0, forward));
    const { allowed, retryAfterMs } = await ask(store, limit);
    expectEqual({ allowed, wait: Math.ceil(retryAfterMs / unitMs) }, await peer());
    wait = retryAfterMs;
  }
  await store.close();
}

describe("blockFor is the peers' blockDuration, whether it is longer or shorter than the interval", () => {
  beforeEach(() => {
    jest.useFakeTimers({ now: Date.parse('2026-09-21T10:00:00Z'), doNotFake: ['nextTick', 'queueMicrotask'] });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('rate-limiter-flexible', async () => {
    const property = fc.asyncProperty(limits, steps, async ({ rate, seconds, blockSeconds }, history) => {
      const limiter = new RateLimiterMemory({ points: rate, duration: seconds, blockDuration: blockSeconds });
      await compare(
        { algo: 'fixed-window', rate, interval: seconds * 1000 },
        blockSeconds * 1000,
        history,
        async () => {
          try {
            await limiter.consume('key');
            return { allowed: true, wait: 0 };
          } catch (refused) {
            return { allowed: false, wait: (refused as RateLimiterRes).msBeforeNext };
          }
        },
      );
    });
    await fc.assert(property, { numRuns: RUNS });
  });

  it('@nestjs/throttler, which tells whole seconds', async () => {
    const property = fc.asyncProperty(limits, steps, async ({ rate, seconds, blockSeconds }, history) => {
      const storage = new throttler.ThrottlerStorageService();
      await compare(
        { algo: 'sliding-log', rate, interval: seconds * 1000 },
        blockSeconds * 1000,
        history,
        async () => {
          const { isBlocked, timeToBlockExpire } = await storage.increment(
            'key',
            seconds * 1000,
            rate,
            blockSeconds * 1000,
            'name',
          );
          return { allowed: !isBlocked, wait: isBlocked ? timeToBlockExpire : 0 };
        },
        1000,
      );
      storage.onApplicationShutdown();
    });
    await fc.assert(property, { numRuns: RUNS });
  });
});
