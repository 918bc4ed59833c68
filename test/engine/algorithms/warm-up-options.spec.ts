import { describe, expect, it } from '@jest/globals';
import { type AlgorithmOptions, RateLimitConfigError } from '../../../lib/index.js';
import { compile } from '../../support/limits/stores.js';
import { checkOptions } from '../../support/limits/checked-options.js';

const bucket = { algo: 'token-bucket', rate: 2, interval: '1s' } as const;
const options = (more: object) => ({ ...bucket, ...more }) as AlgorithmOptions;
const rampOf = (warmUp: object) => (compile(options({ warmUp })).parameters as unknown as { ramp: object }).ramp;

describe('warmUp', () => {
  it.each<[unknown, string | RegExp]>([
    [null, "test.warmUp: expected { for, from } such as { for: '5m', from: 0.3 }, received null"],
    ['5m', "test.warmUp: expected { for, from } such as { for: '5m', from: 0.3 }, received '5m'"],
    [[], "test.warmUp: expected { for, from } such as { for: '5m', from: 0.3 }, received []"],
    [{}, 'test.warmUp.for: missing, expected milliseconds or a duration'],
    [{ for: '5m' }, 'test.warmUp.from: missing, expected a number >= 0.001 and < 1'],
    [{ for: '0s', from: 0.3 }, /test\.warmUp\.for: expected milliseconds or a duration.+, received '0s'/],
    [{ for: '2y', from: 0.3 }, /test\.warmUp\.for: expected milliseconds or a duration.+, received '2y'/],
    [{ for: '5m', from: 1 }, 'test.warmUp.from: expected a number >= 0.001 and < 1, received 1'],
    [{ for: '5m', from: 0 }, 'test.warmUp.from: expected a number >= 0.001 and < 1, received 0'],
    [{ for: '5m', from: '0.3' }, "test.warmUp.from: expected a number >= 0.001 and < 1, received '0.3'"],
    [{ for: '5m', from: NaN }, 'test.warmUp.from: expected a number >= 0.001 and < 1, received NaN'],
    [{ for: '5m', from: 0.3, to: 1 }, "test.warmUp: unknown option 'to', expected one of for, from"],
  ])('is refused as %p', (warmUp, message) => {
    const make = () => compile(options({ warmUp }));
    expect(make).toThrow(RateLimitConfigError);
    expect(make).toThrow(message);
  });

  it('is refused beside what it makes no sense with', () => {
    const warmUp = { for: '5m', from: 0.3 };
    expect(() => compile(options({ warmUp, refill: 'intervally' }))).toThrow(
      "test: options 'warmUp' and refill: 'intervally' exclude each other: expected only one of them",
    );
    expect(() => compile(options({ algo: 'sliding-log', warmUp }))).toThrow(
      "test: option 'warmUp' is not an option of 'sliding-log': it belongs to token-bucket and gcra",
    );
    const prefetch = { units: 2, ttl: '1ms' };
    expect(() => checkOptions({ ...options({ warmUp }), prefetch })).toThrow(
      "test: options 'prefetch' and 'warmUp' exclude each other: expected only one of them",
    );
    expect(() => compile(options({ rate: 4999, warmUp: { for: '1y', from: 0.123 } }))).toThrow(
      "test.warmUp.for: a warm-up of '1y' cannot be counted in whole numbers with this rate",
    );
  });

  it('is counted in whole numbers: the ramp of Guava, whose cold limit is three times as slow', () => {
    // 500 ms a unit; 8 units of coldness in 4 s, the last 4 of them at the full rate: each is as much as cools in 500 ms.
    expect(rampOf({ for: '4s', from: 1 / 3 })).toEqual({ rest: 2, use: 1e6, warm: 4e6, cold: 8e6, extra: 2e6 });
  });

  it('takes shares as fractions of thousandths or simpler', () => {
    expect(rampOf({ for: '1s', from: 0.3 })).toEqual(rampOf({ for: '1s', from: 3 / 10 }));
    expect(rampOf({ for: '1s', from: 0.12349 })).toEqual(rampOf({ for: '1s', from: 0.123 }));
    expect(rampOf({ for: '1s', from: 0.9999 })).toEqual(rampOf({ for: '1s', from: 0.999 }));
  });

  it('stays with a part of the limit, and has counters of its own', () => {
    const limit = compile(options({ warmUp: { for: '5m', from: 0.3 } }), 'one');
    expect(limit.partOf(0.5).options).toMatchObject({ rate: 1, burst: 1, warmUp: { for: '5m', from: 0.3 } });
    expect(limit.id).not.toBe(compile(bucket, 'one').id);
    expect(limit.algorithm.name).toBe('token-bucket');
  });
});
