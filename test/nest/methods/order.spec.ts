import 'reflect-metadata';
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Injectable, type Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import fc from 'fast-check';
import { type LimitDefinition, RateLimitModule } from '../../../lib/index.js';
import { Limited } from '../../../lib/index.js';
import { propertyRuns } from '../../support/limits/property-runs.js';

interface Call {
  readonly key: string;
  readonly cost: number;
  /** How long after the call before, in milliseconds. */
  readonly after: number;
  /** How long the method takes, in milliseconds. */
  readonly takes: number;
}

let app: TestingModule | undefined;

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(async () => {
  jest.useRealTimers();
  await app?.close();
});

const call = fc.record({
  key: fc.constantFrom('a', 'b'),
  cost: fc.integer({ min: 1, max: 2 }),
  after: fc.constantFrom(0, 0, 1, 300, 2000),
  takes: fc.constantFrom(0, 1, 700),
});

const limit = fc.constantFrom<LimitDefinition>(
  { algo: 'gcra', rate: 3, interval: '1s', burst: 3 },
  { algo: 'token-bucket', rate: 2, interval: '1s', burst: 4 },
  { algo: 'sliding-log', rate: 2, interval: '1s' },
  { algo: 'fixed-window', rate: 3, interval: '1s' },
  { algo: 'leaky-bucket', rate: 4, interval: '1s', queue: 40 },
  { algo: 'concurrency', limit: 2, ttl: '1m' },
);

async function start(type: Type, paced: LimitDefinition): Promise<void> {
  const imports = [RateLimitModule.forRoot({ define: { paced } })];
  app = await Test.createTestingModule({ imports, providers: [type] }).compile();
  await app.init();
}

it('calls that wait start in the order in which they were made, per key, and all run', async () => {
  await fc.assert(
    fc.asyncProperty(limit, fc.array(call, { minLength: 1, maxLength: 12 }), async (paced, calls) => {
      const started: number[] = [];
      @Injectable()
      class Work {
        @Limited('paced', { key: ({ key }: Call) => key, cost: ({ cost }: Call) => cost, onLimit: 'wait' })
        async run({ takes }: Call, index: number): Promise<number> {
          started.push(index);
          await new Promise((resolve) => setTimeout(resolve, takes));
          return index;
        }
      }
      await start(Work, paced);
      const work = app!.get(Work);
      const results: Promise<number>[] = [];
      for (const [index, each] of calls.entries()) {
        await jest.advanceTimersByTimeAsync(each.after);
        results.push(work.run(each, index));
      }
      await jest.advanceTimersByTimeAsync(60_000);
      expect(await Promise.all(results)).toEqual(calls.map((_, index) => index));
      for (const key of ['a', 'b']) {
        const ofKey = started.filter((index) => calls[index]!.key === key);
        expect(ofKey).toEqual(ofKey.toSorted((one, other) => one - other));
      }
      await app!.close();
      app = undefined;
    }),
    { numRuns: propertyRuns(25), endOnFailure: true },
  );
});
