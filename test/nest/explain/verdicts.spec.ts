import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import {
  type LimitDefinition,
  LimiterService,
  type LimitSpec,
  RateLimit,
  RateLimitModule,
  SkipRateLimit,
  type Store,
} from '../../../lib/index.js';
import { anyOptions, clockStep, costOf, costShare } from '../../support/limits/arbitraries.js';
import { expectEqual, PROPERTY_TIMEOUT_MS, propertyRuns } from '../../support/limits/property-runs.js';
import { connectRedis, ManualClock, storeKinds } from '../../support/limits/stores.js';
import { TriedApp } from '../../docs/tried-app.js';
import { explained, explainFirst, lastExplained } from './explaining-guard.js';

let redis: Redis;
let keys = 0;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.quit());

const definition = fc
  .record({
    options: anyOptions,
    blockFor: fc.option(fc.constantFrom(100, '10s', '1h', [100, '10s'], ['10s', '1m', '1h']), { nil: undefined }),
    mode: fc.constantFrom('enforce' as const, 'enforce' as const, 'shadow' as const),
  })
  .map(({ options, blockFor, mode }): LimitDefinition => {
    const common = { mode, ...(blockFor === undefined ? {} : { blockFor }) };
    return { ...options, ...common };
  });

/** Puts a decorator on a class, or on a method of its prototype. */
function decorate(decorator: ClassDecorator & MethodDecorator, target: readonly unknown[]): void {
  Reflect.apply(decorator, undefined, target);
}

describe.each(Object.entries(storeKinds))(
  'what is explained is what follows, on a %s',
  (_, make) => {
    it('for calls from code, after any history', async () => {
      const clock = new ManualClock();
      const store: Store = make(clock, redis);
      const testing = await Test.createTestingModule({
        imports: [RateLimitModule.forRoot({ store, timeout: '10s' })],
      }).compile();
      await testing.init();
      const service = testing.get(LimiterService);
      const told: unknown[] = [];
      service.decisions$.subscribe((event) => told.push(event));
      const step = fc.record({
        what: fc.constantFrom('consume', 'consume', 'consume', 'consume', 'penalize', 'block', 'unblock', 'reset'),
        share: costShare,
        wait: clockStep,
      });
      const history = fc.asyncProperty(
        definition,
        fc.array(step, { minLength: 1, maxLength: 12 }),
        async (limit, steps) => {
          const limiter = service.for(limit);
          const key = `user:${++keys}`;
          // Units that were taken while a limit was cold may be owed for longer than a block.
          let owes = 'warmUp' in limit;
          for (const { what, share, wait: passes } of steps) {
            clock.advanceMs(passes * limiter.rule.configured.windowMs(clock.now() / 1000));
            const cost = costOf(share, limiter.rule.configured.quota);
            if (what === 'block') await limiter.block(key, cost);
            else if (what === 'unblock') await limiter.unblock(key);
            else if (what === 'reset') await limiter.reset(key);
            else if (what === 'penalize' && limit.algo !== 'concurrency') {
              await limiter.penalize(key, cost);
              owes = true;
            }
            const before = told.length;
            const {
              outcome,
              limits: [explanation],
            } = await service.explain({ limit, key, cost });
            const again = await service.explain({ limit, key, cost });
            expectEqual(told.length, before);
            expectEqual(again.limits, [explanation]);
            const peeked = await limiter.peek(key, cost);
            const { state, decision } = explanation!;
            expectEqual([state!.remaining, state!.resetAfterMs], [peeked.remaining, peeked.resetAfterMs]);
            const got = await limiter.consume(key, cost);
            expectEqual(outcome.verdict, got.allowed ? 'allowed' : 'refused');
            const wait = outcome.retryAfterMs ?? Infinity;
            // A debt outlasts the block, and what it is only the store knows.
            if (owes && decision!.blocks === true) expect(wait).toBeLessThanOrEqual(got.retryAfterMs);
            else expectEqual(wait, got.retryAfterMs);
            const offences = state!.offences ?? 0;
            expectEqual(
              got.offences ?? 0,
              decision!.blocks === true && 'blockFor' in limit && Array.isArray(limit.blockFor)
                ? offences + 1
                : offences,
            );
            expectEqual(outcome.delayMs, got.delayMs);
            if (limit.mode !== 'shadow') expectEqual(decision!.allowed, got.allowed);
            if (state!.blockedForMs! > 0) expectEqual([got.remaining, decision!.allowed], [0, false]);
          }
        },
      );
      try {
        await fc.assert(history, { numRuns: propertyRuns(70) });
      } finally {
        await testing.close();
        await store.close();
      }
    });

    it('for requests to routes with any limits', async () => {
      const name = fc.constantFrom('a', 'b', 'c');
      const small = fc
        .record({
          name,
          algo: fc.constantFrom('fixed-window', 'gcra', 'sliding-log'),
          rate: fc.integer({ min: 1, max: 4 }),
          mode: fc.constantFrom('enforce', 'enforce', 'enforce', 'shadow'),
          phase: fc.constantFrom('guard', 'guard', 'authenticated'),
          cost: fc.constantFrom(undefined, 2, () => 3),
          skip: fc.constantFrom(
            undefined,
            undefined,
            () => true,
            () => false,
          ),
          key: fc.constantFrom('ip', 'global', () => undefined, 'header:x-none'),
          onMissingKey: fc.constantFrom('ip', 'ip', 'skip', 'refuse'),
          byFunction: fc.constantFrom(false, false, true),
        })
        .map(({ byFunction, cost, skip, ...rest }) => {
          const functions = { ...(cost === undefined ? {} : { cost }), ...(skip === undefined ? {} : { skip }) };
          const limit = { ...rest, ...functions, interval: '10s' } as LimitDefinition;
          const spec: LimitSpec = byFunction ? () => limit : limit;
          return { limit, spec };
        });
      const level = fc.record({
        limits: fc.uniqueArray(small, { maxLength: 2, selector: ({ limit }) => limit.name }),
        skips: fc.constantFrom('none', 'none', 'none', 'all'),
      });
      const everywhere = fc.uniqueArray(small, { maxLength: 2, selector: ({ limit }) => limit.name });
      const waits = fc.array(fc.constantFrom(0, 0, 0, 2_500, 10_000), { minLength: 1, maxLength: 6 });
      const routes = fc.asyncProperty(
        everywhere,
        level,
        level,
        waits,
        async (outermost, ofClass, ofHandler, waiting) => {
          class AnyController {
            get() {
              return 'ok';
            }
          }
          Controller()(AnyController);
          const { prototype } = AnyController;
          const method = Object.getOwnPropertyDescriptor(prototype, 'get')!;
          Get()(prototype, 'get', method);
          for (const [{ limits, skips }, target] of [
            [ofClass, [AnyController]],
            [ofHandler, [prototype, 'get', method]],
          ] as const) {
            const [first, ...others] = limits.map(({ spec }) => spec);
            if (first !== undefined) decorate(RateLimit(first, ...others), target);
            if (skips === 'all') decorate(SkipRateLimit(), target);
          }
          const clock = new ManualClock();
          const store = make(clock, redis);
          const limits = outermost.map(({ limit }) => limit);
          const app = await TriedApp.start(
            {
              imports: [RateLimitModule.forRoot({ store, limits, timeout: '10s', guard: 'custom', headers: false })],
              controllers: [AnyController],
              providers: explainFirst,
            },
            { ownStore: true },
          );
          try {
            for (const wait of waiting) {
              clock.advanceMs(wait);
              const count = explained.length;
              const response = await app.get('/');
              await response.text();
              expect(explained).toHaveLength(count + 1);
              const { outcome } = lastExplained();
              expect(outcome.verdict).toBe(response.status === 200 ? 'allowed' : 'refused');
              const retryAfter = response.headers.get('retry-after');
              if (response.status === 429 && retryAfter !== null && outcome.retryAfterMs !== null) {
                expect(Math.ceil(outcome.retryAfterMs / 1000)).toBe(Number(retryAfter));
              }
            }
          } finally {
            await app.close();
            await store.close();
          }
        },
      );
      await fc.assert(routes, { numRuns: propertyRuns(25) });
    });
  },
  PROPERTY_TIMEOUT_MS,
);
