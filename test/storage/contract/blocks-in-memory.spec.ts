import { describe, expect, it } from '@jest/globals';
import { CompiledLimit, type LimitSettings } from '../../../lib/testing/store/index.js';
import { endOf } from '../../../lib/storage/stores/memory/block.js';

const limitOf = (settings: Partial<LimitSettings>) =>
  new CompiledLimit({ algo: 'gcra', rate: 1, interval: '1s' }, { location: 'test', ...settings });

const plain = limitOf({ blockFor: 10 });
const stepped = limitOf({ escalation: { steps: [10, 20, 40], forgetAfter: 100 } });

// What blocks do is in operations/block.ts, block-for.ts and escalating-blocks.ts.
describe('a block in memory is kept', () => {
  it.each([
    ['until its end', plain, 0, 1000],
    ['until its end, if its offences are from a time when the limit had steps', plain, 3, 1000],
    ['until its end under a limit with steps, if it is no offence', stepped, 0, 1000],
    ['until its offences are forgotten', stepped, 2, 1100],
  ] as const)('%s', (_, limit, offences, end) => {
    expect(endOf(limit, { until: 1000, duration: 10, offences })).toBe(end);
  });
});
