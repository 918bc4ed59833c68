/** A spec whose tests fail in functions without a name. */
import { describe, expect, it } from '@jest/globals';

describe('failing', () => {
  it('fails in a callback', () => {
    [1, 2].forEach((value) => {
      const least = 2;
      expect(value).toBeGreaterThanOrEqual(least);
    });
  });

  it('hangs', () => new Promise(() => {}), 10);
});
