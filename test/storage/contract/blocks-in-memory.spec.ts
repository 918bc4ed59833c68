import { describe, expect, it } from '@jest/globals';
import { CompiledLimit, type LimitSettings } from '../../../lib/testing/store/index.js';
import { type Block, blockAt, blockFor, endOf, nextBlock } from '../../../lib/storage/stores/memory/block.js';

const limitOf = (settings: Partial<LimitSettings>) =>
  new CompiledLimit({ algo: 'gcra', rate: 1, interval: '1s' }, { location: 'test', ...settings });

const plain = limitOf({ blockFor: 10 });
const stepped = limitOf({ escalation: { steps: [10, 20, 40], forgetAfter: 100 } });

const block = (others: Partial<Block> = {}): Block => ({ until: 1000, duration: 10, offences: 0, ...others });

describe('a block of one length', () => {
  it('lasts until its end', () => {
    const stored = block();
    expect(blockAt(plain, stored, 999)).toBe(stored);
    expect(blockAt(plain, stored, 1000)).toBeUndefined();
    expect(endOf(plain, stored)).toBe(1000);
  });

  it('ends no later than if it had just begun, on a clock that was set back', () => {
    expect(blockAt(plain, block(), 990)).toEqual(block());
    expect(blockAt(plain, block(), 989)).toEqual(block({ until: 999 }));
    expect(blockAt(plain, block(), 500)).toEqual(block({ until: 510 }));
  });

  it('knows of no offences, also where a limit had steps before', () => {
    expect(blockAt(plain, block({ offences: 3 }), 995)).toEqual(block());
    expect(blockAt(plain, block({ offences: 3, duration: 0 }), 995)).toBeUndefined();
    expect(endOf(plain, block({ offences: 3 }))).toBe(1000);
    expect(nextBlock(plain, block({ offences: 3 }), 0, 2000)).toEqual({ until: 2010, duration: 10, offences: 0 });
  });

  it('lasts as long as the wait that it begins with', () => {
    expect(nextBlock(plain, undefined, 9, 2000)).toMatchObject({ until: 2010, duration: 10 });
    expect(nextBlock(plain, undefined, 30, 2000)).toMatchObject({ until: 2030, duration: 30 });
  });
});

describe('a block of a limit with steps', () => {
  it('is kept for its offences when it is over', () => {
    const over = blockAt(stepped, block({ offences: 2 }), 1000);
    expect(over).toEqual({ until: 1000, duration: 0, offences: 2 });
    expect(blockAt(stepped, over!, 1099)).toBe(over);
    expect(blockAt(stepped, over!, 1100)).toBeUndefined();
    expect(endOf(stepped, block({ offences: 2 }))).toBe(1100);
  });

  it('is over for good, also on a clock that steps back', () => {
    const over = block({ duration: 0, offences: 2 });
    expect(blockAt(stepped, over, 500)).toEqual({ until: 500, duration: 0, offences: 2 });
    expect(blockAt(stepped, over, 1000)).toBe(over);
  });

  it('is forgotten at its end if it is no offence', () => {
    expect(blockAt(stepped, block(), 1000)).toBeUndefined();
    expect(blockAt(stepped, block(), 999)).toEqual(block());
    expect(endOf(stepped, block())).toBe(1000);
  });

  it('lasts longer with each offence, up to the last step', () => {
    const durations = [undefined, 0, 1, 2, 3, 4].map((offences) => {
      const last = offences === undefined ? undefined : block({ offences });
      return nextBlock(stepped, last, 0, 2000);
    });
    expect(durations.map(({ duration }) => duration)).toEqual([10, 10, 20, 40, 40, 40]);
    expect(durations.map(({ offences }) => offences)).toEqual([1, 1, 2, 3, 4, 5]);
    expect(nextBlock(stepped, undefined, 15, 2000)).toEqual({ until: 2015, duration: 15, offences: 1 });
  });

  it('counts 255 offences at most, and lasts 407 days at most', () => {
    expect(nextBlock(stepped, block({ offences: 254 }), 0, 0).offences).toBe(255);
    expect(nextBlock(stepped, block({ offences: 255 }), 0, 0).offences).toBe(255);
    expect(nextBlock(stepped, undefined, 2 ** 46, 0).duration).toBe(2 ** 45 - 1);
    expect(nextBlock(plain, undefined, 2 ** 46, 0).duration).toBe(2 ** 46);
  });
});

describe('a block by a call', () => {
  it('is no offence, and keeps those that there were', () => {
    expect(blockFor(50, 2000, undefined)).toEqual({ until: 2050, duration: 50, offences: 0 });
    expect(blockFor(50, 2000, block({ offences: 2 }))).toEqual({ until: 2050, duration: 50, offences: 2 });
  });

  it('of no time is none, and forgets offences', () => {
    expect(blockFor(0, 2000, block({ offences: 2 }))).toBeUndefined();
  });
});
