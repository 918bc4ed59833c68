import { describe, expect, it } from '@jest/globals';
import { opensPages } from './browser-binary.mjs';

describe('a run of Jest', () => {
  it.each([
    [[], true],
    [['test/console/browser'], true],
    [['test/engine/algorithms', 'BROWSER/'], true],
    [['test/engine/algorithms'], false],
    [['browser-binary'], false],
  ])('of the patterns %j has specs that open pages: %s', (patterns, opens) => {
    expect(opensPages(patterns)).toBe(opens);
  });

  it('of `npm test` has none', () => expect(opensPages([], 'quick')).toBe(false));
});
