import { describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import { type LimitDefinition, RateLimit, RateLimitConfigError } from '../../../../lib/index.js';
import { CompiledLimit } from '../../../../lib/testing/store/index.js';
import { startUp } from '../../../e2e/http-app.js';

const bucket = { algo: 'token-bucket', rate: 100, interval: '1m', burst: 40 } as const;
const slots = { algo: 'concurrency', limit: 5, ttl: '1m' } as const;

/** Starts an app with a limit whose candidate is wrong in a way that TypeScript refuses, too. */
const start = (definition: object) => startUp({ define: { api: definition as LimitDefinition } });

describe('a candidate', () => {
  it.each<[string, object, string | RegExp]>([
    [
      'no object',
      { ...bucket, candidate: 60 },
      'define.api.candidate: expected an object of at least one of algo, rate, interval, burst, refill, warmUp, such as { rate: 60 }, received 60',
    ],
    [
      'a list',
      { ...bucket, candidate: [] },
      /define\.api\.candidate: expected an object of at least one of algo, .+, received \[\]/,
    ],
    [
      'null',
      { ...bucket, candidate: null },
      /define\.api\.candidate: expected an object of at least one of algo, .+, received null/,
    ],
    [
      'empty',
      { ...bucket, candidate: { rate: undefined } },
      /define\.api\.candidate: expected an object .+, received \{ rate: undefined \}/,
    ],
    [
      'a rate that is none',
      { ...bucket, candidate: { rate: 0 } },
      'define.api.candidate.rate: expected a whole number >= 1, received 0',
    ],
    [
      'an unknown algorithm',
      { ...bucket, candidate: { algo: 'leaky' } },
      /define\.api\.candidate\.algo: expected one of .+, received 'leaky'/,
    ],
    [
      'an option of another algorithm',
      { ...bucket, candidate: { slices: 4 } },
      "define.api.candidate: option 'slices' is not an option of 'token-bucket': it belongs to sliding-window",
    ],
    [
      'an option that its own algorithm lacks',
      { ...bucket, candidate: { algo: 'fixed-window', burst: 4 } },
      "define.api.candidate: option 'burst' is not an option of 'fixed-window': it belongs to token-bucket and gcra",
    ],
    [
      'an option that its algorithm needs and the limit lacks',
      { algo: 'calendar-window', rate: 5, period: 'day', candidate: { algo: 'gcra' } },
      'define.api.candidate.interval: missing, expected ',
    ],
    ...['key', 'cost', 'phase', 'name', 'blockFor', 'candidate'].map((option): [string, object, string] => [
      `a '${option}'`,
      { ...bucket, candidate: { [option]: 'ip' } },
      `define.api.candidate: option '${option}' is always that of the limit. A candidate can only set algo, rate, interval, burst, refill or warmUp`,
    ]),
    [
      'a misspelt option',
      { ...bucket, candidate: { rat: 60 } },
      "define.api.candidate: unknown option 'rat'. Did you mean 'rate'?",
    ],
    [
      'one beside prefetched units',
      { ...bucket, prefetch: { units: 5, ttl: '100ms' }, candidate: { rate: 60 } },
      "define.api: options 'candidate' and 'prefetch' exclude each other: expected only one of them",
    ],
    [
      'what is held, beside a rate',
      { ...bucket, candidate: slots },
      "define.api.candidate.algo: the limit has 'token-bucket' and its candidate 'concurrency'. Use 'concurrency' for both or for none",
    ],
    [
      'a rate, beside what is held',
      { ...slots, candidate: bucket },
      "define.api.candidate.algo: the limit has 'concurrency' and its candidate 'token-bucket'. Use 'concurrency' for both or for none",
    ],
  ])('that is %s is refused when the app starts', async (_, definition, message) => {
    const starting = start(definition);
    await expect(starting).rejects.toThrow(RateLimitConfigError);
    await expect(starting).rejects.toThrow(message);
  });

  it('is no default of all limits', async () => {
    const starting = startUp({ defaults: { candidate: { rate: 1 } } as object });
    await expect(starting).rejects.toThrow(
      "defaults: unknown option 'candidate'. It is an option of a limit: move it there",
    );
  });

  it('is refused by the place of its limit', async () => {
    @Controller()
    class ReportsController {
      @Get()
      @RateLimit({ algo: 'gcra', rate: 5, interval: '1s', candidate: { burst: -1 } })
      list() {}
    }
    await expect(startUp({}, [ReportsController])).rejects.toThrow(
      '@RateLimit on ReportsController.list.candidate.burst: expected a whole number >= 1, received -1',
    );
  });
});

describe('a compiled candidate', () => {
  const limit = new CompiledLimit(bucket, {
    location: 'test',
    name: 'api',
    namespace: '@module',
    generation: 3,
    blockFor: 5_000_000,
    nearLimit: 0.5,
    instance: true,
    onStoreError: 'deny',
    carry: { mode: 'additive', quotaBefore: 4 },
    candidate: { ...bucket, burst: 10 },
  });

  it('is the limit in all but its options, and refuses nothing', () => {
    expect(limit.candidate).toMatchObject({
      name: 'api',
      quota: 10,
      nearFrom: 5,
      blockFor: 5_000_000,
      instance: true,
      onStoreError: 'deny',
      shadow: true,
      isCandidate: true,
      carry: undefined,
      candidate: undefined,
    });
  });

  it('has counters that no other limit has', () => {
    expect([limit.id, limit.candidate!.id]).toEqual(['@module:api:td.3', '@module:api:tdc.3']);
    expect(limit.candidate!.lineage).toBe('@module:api:tdc');
  });

  it('goes with its limit into another namespace', () => {
    expect(limit.inNamespace('@module route').candidate).toMatchObject({ id: '@module route:api:tdc.3', quota: 10 });
  });

  it('is shared as its limit is', () => {
    const share = limit.partOf(0.5);
    expect([share.quota, share.candidate!.quota]).toEqual([20, 5]);
    expect(limit.candidate!.partOf(0.5)).toMatchObject({ id: '@module:api:tdc.3', quota: 5, isCandidate: true });
  });
});
