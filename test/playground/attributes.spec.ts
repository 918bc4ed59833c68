import { describe, expect, it } from '@jest/globals';
import { ATTRIBUTES, readAttributes } from '../../playground/comparison/attributes.js';
import { ALGORITHMS } from '../../playground/simulation/settings.js';

describe('the attributes of <sluice-comparison>', () => {
  it('may all be left out', () => {
    expect(readAttributes({})).toEqual({
      algorithms: ALGORITHMS,
      pattern: 'edge',
      load: 150,
      settings: { rate: 10, interval: '1m', burst: 10, queue: 10, slices: 10, limit: 3, hold: 20, estimate: 2 },
      controls: 'full',
      level: 3,
    });
  });

  it('are all read', () => {
    const given: Record<(typeof ATTRIBUTES)[number], string> = {
      algorithms: 'gcra, leaky-bucket',
      pattern: 'poisson',
      load: '80',
      rate: '5',
      interval: '1h',
      burst: '9',
      queue: '0',
      slices: '4',
      limit: '7',
      hold: '50',
      estimate: '3',
      controls: 'few',
      'heading-level': '2',
    };
    expect(readAttributes(given)).toEqual({
      algorithms: ['gcra', 'leaky-bucket'],
      pattern: 'poisson',
      load: 80,
      settings: { rate: 5, interval: '1h', burst: 9, queue: 0, slices: 4, limit: 7, hold: 50, estimate: 3 },
      controls: 'few',
      level: 2,
    });
  });

  it.each([
    [{ rate: 'many' }, "<sluice-comparison>: option 'rate' is 'many', wants a whole number >= 1 and <= 100"],
    [{ rate: '' }, "option 'rate' is ''"],
    [{ load: '1.5' }, "option 'load' is 1.5, wants a whole number >= 10 and <= 400"],
    [{ pattern: 'flood' }, "option 'pattern' is 'flood', wants one of steady, burst, poisson, edge, drawn"],
    [{ controls: 'none' }, "option 'controls' is 'none', wants one of few, full"],
    [{ 'heading-level': '1' }, "option 'heading-level' is 1, wants a whole number >= 2 and <= 6"],
  ])('refuse %j', (given, message) => expect(() => readAttributes(given)).toThrow(message));
});
