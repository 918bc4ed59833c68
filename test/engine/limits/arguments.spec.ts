import { describe, expect, it } from '@jest/globals';
import { RateLimitArgumentError } from '../../../lib/index.js';
import {
  assertActual,
  assertCost,
  assertHistory,
  assertKey,
  assertSignal,
  assertUnits,
  toMs,
} from '../../../lib/engine/limits/arguments.js';

const NOT_WHOLE = [0, -1, 1.5, NaN, Infinity, 2 ** 53, '1', null, undefined, {}];

const errorOf = (act: () => unknown): string | undefined => {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(RateLimitArgumentError);
    return (error as Error).message;
  }
  return undefined;
};

describe('arguments of calls', () => {
  it.each<[string, (value: unknown) => void, string]>([
    ['units', assertUnits, 'units: '],
    ['a number of windows', assertHistory, 'number of windows: '],
  ])('%s: a whole number from 1 on', (_, accept, subject) => {
    for (const value of NOT_WHOLE) {
      const message = errorOf(() => accept(value));
      expect(message).toMatch(subject);
      expect(message).toMatch(/: expected a whole number >= 1, received /);
    }
    for (const value of [1, 2, Number.MAX_SAFE_INTEGER]) expect(errorOf(() => accept(value))).toBeUndefined();
  });

  it('a cost: a whole number from 0 on', () => {
    for (const value of NOT_WHOLE.slice(1)) {
      expect(errorOf(() => assertCost(value))).toMatch(/^cost: expected a whole number >= 0, received /);
    }
    for (const value of [0, 1, Number.MAX_SAFE_INTEGER]) expect(errorOf(() => assertCost(value))).toBeUndefined();
  });

  it('an actual cost: a whole number from 0 on', () => {
    for (const value of NOT_WHOLE.slice(1)) {
      expect(errorOf(() => assertActual(value))).toMatch(/^actual cost: expected a whole number >= 0, received /);
    }
    for (const value of [0, 1, 2]) expect(errorOf(() => assertActual(value))).toBeUndefined();
  });

  it('a key: a string that is not empty', () => {
    for (const value of ['', 1, null, undefined, ['a']]) {
      expect(errorOf(() => assertKey(value))).toMatch(/^key: expected a string that is not empty, received /);
    }
    expect(errorOf(() => assertKey('a'))).toBeUndefined();
  });

  it('a duration: 0 or more, at most a year', () => {
    for (const value of [-1, NaN, Infinity, 31_557_600_001, '', 'soon', '366d', '9'.repeat(101), null, {}]) {
      expect(errorOf(() => toMs('timeout', value as never))).toMatch(
        /^timeout: expected milliseconds or a duration such as '250ms', '10s', '1m' \(units: ms, s, m, h, d, w, y\), at most 1 year, received /,
      );
    }
    expect([0, 0.5, '10s', '1y'].map((value) => toMs('timeout', value))).toEqual([0, 0.5, 10_000, 31_557_600_000]);
  });

  it('a signal: an AbortSignal, or nothing', () => {
    for (const value of [null, {}, 'abort', 1, { addEventListener: true }]) {
      expect(errorOf(() => assertSignal(value))).toMatch(/^signal: expected an AbortSignal, received /);
    }
    for (const value of [undefined, new AbortController().signal]) {
      expect(errorOf(() => assertSignal(value))).toBeUndefined();
    }
  });
});
