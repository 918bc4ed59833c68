import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { eur, gbp, money, RateLimitArgumentError, usd } from '../../../lib/index.js';
import { propertyRuns } from '../../support/limits/property-runs.js';

describe('an amount of money', () => {
  it.each<[amount: number | string, micros: number]>([
    [0, 0],
    [0.12, 120_000],
    ['0.12', 120_000],
    ['0.120', 120_000],
    ['0.1200000000', 120_000],
    [50, 50_000_000],
    ['50.00', 50_000_000],
    [0.000001, 1],
    [1.1, 1_100_000],
    [4.35, 4_350_000],
    [1.005, 1_005_000],
    ['007', 7_000_000],
    ['9007199254.740991', Number.MAX_SAFE_INTEGER],
  ])('%p is %d micro-units', (amount, micros) => {
    for (const read of [usd, eur, gbp, (each: number | string) => money(each, 'JPY')])
      expect(read(amount)).toBe(micros);
  });

  it.each([
    '',
    ' 1',
    '1 ',
    '1,5',
    '1.',
    '.5',
    '-1',
    '+1',
    '1e3',
    '0x10',
    '0.0000001',
    '9007199254.740992',
    '1'.repeat(400),
    0.0000001,
    0.1 + 0.2,
    -1,
    NaN,
    Infinity,
    1e21,
    2 ** 33 + 0.5,
    null,
    undefined,
    1n,
    {},
    [1],
  ])('%p is refused', (amount) => {
    expect(() => eur(amount as never)).toThrow(RateLimitArgumentError);
    expect(() => eur(amount as never)).toThrow(
      "amount in EUR: expected a decimal number >= 0 with at most six digits after the point, such as '0.12', of at most 9007199254.740991 (as text if a number cannot express it exactly), received ",
    );
  });

  it('is read digit by digit, whatever its size', () => {
    const whole = fc.integer({ min: 0, max: 9_007_199_253 });
    const property = fc.property(whole, fc.integer({ min: 0, max: 999_999 }), (units, micros) => {
      const text = `${units}.${String(micros).padStart(6, '0')}`;
      expect(BigInt(usd(text))).toBe(BigInt(units) * 1_000_000n + BigInt(micros));
      // A number tells as many digits as these, unless it is very large.
      if (units < 2 ** 33) expect(usd(Number(text))).toBe(usd(text));
    });
    fc.assert(property, { numRuns: propertyRuns(200) });
  });

  it.each(['', 'usd', 'dollars', 'XXXX', null, 1])('has no currency %p', (currency) => {
    expect(() => money(1, currency as never)).toThrow('expected an ISO 4217 code such as');
  });
});
