/** A spec whose tests fail in functions without a name. */
import { describe, expect, it } from '@jest/globals';

describe('failing', () => {
  it('fails in a callback', () => {
    [1, 2].forEach((value) => {
      const least = 2;
      expect(value).toBeGreaterThanOrEqual(least);
    });
  });

  it('has another value', () => {
    expect({ seen: 1 }).toEqual({ seen: 2 });
  });

  it('rejects', async () => {
    await expect(Promise.reject(new Error('no'))).resolves.toBe(1);
  });

  it('asserts less than it says', () => {
    expect.assertions(3);
    expect(1).toBe(1);
    expect([]).toHaveLength(0);
  });

  it('hangs', () => new Promise(() => {}), 10);
});
