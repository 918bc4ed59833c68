import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { inProportion } from '../../../lib/engine/algorithms/scale.js';
import { leakyBucket } from '../../../lib/engine/algorithms/leaky-bucket.js';
import { propertyRuns } from '../../support/limits/property-runs.js';
import { connectRedis } from '../../support/limits/stores.js';

/** Whole numbers of any size below 2^53. */
const whole = fc
  .record({
    bits: fc.integer({ min: 1, max: 53 }),
    part: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  })
  .map(({ bits, part }) => Math.max(1, Math.floor(part * 2 ** bits)));
const triple = fc.tuple(fc.oneof(whole, fc.constant(0)), whole, whole);

/** The script's own function, as it stands in its file. */
const [source] = /local function in_proportion[\s\S]*?\nend\n/.exec(readFileSync('lua/in-proportion.lua', 'utf8'))!;
const TWIN = `local floor = math.floor
${source}
local values = cjson.decode(ARGV[1])
local results = {}
for i, value in ipairs(values) do
  results[i] = string.format('%.17g', in_proportion(value[1], value[2], value[3]))
end
return results`;

describe('in proportion', () => {
  let redis: Redis;
  beforeAll(async () => {
    redis = await connectRedis();
  });
  afterAll(() => redis.disconnect());

  it('is exact and rounded up, however large the product', () => {
    fc.assert(
      fc.property(triple, ([amount, to, from]) => {
        const exact = (BigInt(amount) * BigInt(to) + BigInt(from) - 1n) / BigInt(from);
        fc.pre(exact < 2n ** 53n);
        expect(BigInt(inProportion(amount, to, from))).toBe(exact);
      }),
      { numRuns: propertyRuns(20_000) },
    );
  });

  it('is the same in the script, also beyond whole numbers', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(triple, { minLength: 50, maxLength: 50 }), async (values) => {
        const answers = (await redis.eval(TWIN, 0, JSON.stringify(values))) as string[];
        expect(answers.map(Number)).toEqual(values.map((value) => inProportion(...value)));
      }),
      { numRuns: propertyRuns(100) },
    );
  });
});

describe('a share of a limit', () => {
  it('is all whole units that it holds', () => {
    const limit = { algo: 'leaky-bucket', rate: 100, interval: '1s', queue: 100 } as const;
    for (let percent = 1; percent <= 100; percent++) {
      expect(leakyBucket.share(limit, percent / 100)).toMatchObject({ rate: percent, queue: percent });
    }
    expect(leakyBucket.share({ ...limit, rate: 10 }, 0.29)).toMatchObject({ rate: 2 });
  });
});
