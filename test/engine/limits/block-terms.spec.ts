import { describe, expect, it } from '@jest/globals';
import { RateLimitConfigError } from '../../../lib/index.js';
import { checkLimit } from '../../../lib/app/config/limit-options.js';
import { BLOCK_EXPECTED, blockTerms } from '../../../lib/engine/limits/block-terms.js';

const SECOND = 1_000_000;

type Options = Parameters<typeof blockTerms>[0];

const errorOf = (options: Options): string => {
  try {
    checkLimit({ algo: 'gcra', rate: 1, interval: 1, ...options } as object, 'limits.login');
    blockTerms(options, 'limits.login');
  } catch (error) {
    expect(error).toBeInstanceOf(RateLimitConfigError);
    return (error as Error).message;
  }
  throw new Error('it was accepted');
};

const steps = (count: number) => ({ blockFor: Array.from({ length: count }, (_, index) => index + 1) });

describe('the block of a limit', () => {
  it('is none unless it is given', () => {
    expect(blockTerms({}, 'test')).toEqual({ blockFor: 0 });
  });

  it('has one length', () => {
    expect(blockTerms({ blockFor: '10s' }, 'test')).toEqual({ blockFor: 10 * SECOND });
  });

  it('is prolonged by tries if the limit says so, and only where there is one', () => {
    expect(blockTerms({ blockFor: '10s', strike: true }, 'test')).toEqual({ blockFor: 10 * SECOND, strikes: true });
    expect(blockTerms({ blockFor: '10s', strike: false }, 'test')).toEqual({ blockFor: 10 * SECOND });
    expect(errorOf({ strike: true })).toBe(
      "limits.login: option 'strike' needs 'blockFor', for how long a refused key is blocked",
    );
    expect(errorOf({ blockFor: '10s', strike: 'yes' as never })).toBe(
      "limits.login.strike: expected true or false, received 'yes'",
    );
  });

  it('has steps, each at least as long as the one before', () => {
    expect(blockTerms({ blockFor: ['1s', '1s', 2000], forgetAfter: '1m' }, 'test')).toEqual({
      escalation: { steps: [SECOND, SECOND, 2 * SECOND], forgetAfter: 60 * SECOND },
    });
  });

  it('is forgotten after as long as the longest step', () => {
    expect(blockTerms({ blockFor: ['1s', '2s', '5s'] }, 'test')).toEqual({
      escalation: { steps: [SECOND, 2 * SECOND, 5 * SECOND], forgetAfter: 5 * SECOND },
    });
  });

  it('has 1 to 100 steps', () => {
    for (const count of [1, 100]) expect(blockTerms(steps(count), 'test').escalation!.steps).toHaveLength(count);
    for (const count of [0, 101]) {
      expect(errorOf(steps(count))).toMatch(
        /^limits\.login\.blockFor: expected a duration of more than 0 and at most 1 year, or 1 to 100.*, received \[.*\]$/,
      );
    }
  });

  it('is refused with steps that become shorter', () => {
    expect(errorOf({ blockFor: ['10s', '20s', '1s'] })).toBe(
      `limits.login.blockFor: expected ${BLOCK_EXPECTED}, received [ '10s', '20s', '1s' ]`,
    );
  });

  it('is refused with the option that is no duration', () => {
    expect(errorOf({ blockFor: 'soon' })).toMatch(
      /limits\.login\.blockFor: expected a duration of more than 0 and at most 1 year, or 1 to 100 durations.+, received 'soon'/,
    );
    expect(errorOf({ blockFor: ['1s', 'soon'] })).toMatch(/limits\.login\.blockFor\[1\]: expected .+, received 'soon'/);
    expect(errorOf({ blockFor: ['1s'], forgetAfter: 0 })).toMatch(
      /limits\.login\.forgetAfter: expected .+, received 0/,
    );
  });

  it('is forgotten only if it has steps', () => {
    expect(errorOf({ blockFor: '1s', forgetAfter: '1m' })).toBe(
      "limits.login.forgetAfter: expected nothing, unless 'blockFor' is a list of durations, received '1m'",
    );
    expect(errorOf({ forgetAfter: '1m' })).toMatch(
      "forgetAfter: expected nothing, unless 'blockFor' is a list of durations, received '1m'",
    );
  });
});
