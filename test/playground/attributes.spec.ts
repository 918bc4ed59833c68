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
    [{ rate: 'many' }, "<sluice-comparison>.rate: expected a whole number >= 1 and <= 100, received 'many'"],
    [{ rate: '' }, "<sluice-comparison>.rate: expected a whole number >= 1 and <= 100, received ''"],
    [{ load: '1.5' }, 'load: expected a whole number >= 10 and <= 400, received 1.5'],
    [{ pattern: 'flood' }, "pattern: expected one of steady, burst, poisson, edge, drawn, received 'flood'"],
    [{ controls: 'none' }, "controls: expected one of few, full, received 'none'"],
    [{ 'heading-level': '1' }, 'heading-level: expected a whole number >= 2 and <= 6, received 1'],
  ])('refuse %j', (given, message) => expect(() => readAttributes(given)).toThrow(message));
});
