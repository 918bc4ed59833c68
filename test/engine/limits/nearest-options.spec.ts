import { describe, expect, it } from '@jest/globals';
import { nearest } from '../../../lib/engine/util/nearest.js';

describe('the name that was meant', () => {
  it.each([
    ['raet', 'rate'],
    ['Rate', 'rate'],
    ['reat', 'rate'],
    ['intervall', 'interval'],
    ['blockfor', 'blockFor'],
    ['gate', 'rate'],
    ['name', undefined],
    ['near', undefined],
    ['x', undefined],
    ['', undefined],
    ['__proto__', undefined],
  ])('by %p is %p', (word, meant) => {
    expect(nearest(word, ['rate', 'interval', 'burst', 'blockFor', 'nearLimit'])).toBe(meant);
  });

  it('is the nearest of several', () => {
    expect(nearest('limits', ['limit', 'list', 'lists'])).toBe('limit');
    expect(nearest('rates', [])).toBeUndefined();
  });
});
