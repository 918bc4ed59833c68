import { describe, expect, it } from '@jest/globals';
import type { Decision } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { tighter, toCheckResult } from '../../../lib/engine/limits/decision.js';

const limitOf = (shadow: boolean) => ({
  limit: new CompiledLimit({ algo: 'gcra', rate: 10, interval: '1s' }, { location: 'test', shadow }),
});
const enforced = limitOf(false);
const shadow = limitOf(true);

const decision = (limit: string, others: Partial<Decision> = {}): Decision => ({
  allowed: true,
  limit,
  quota: 10,
  remaining: 5,
  retryAfterMs: 0,
  resetAfterMs: 1000,
  delayMs: 0,
  source: 'memory',
  ...others,
});
const refusal = (limit: string, retryAfterMs: number) =>
  decision(limit, { allowed: false, remaining: 0, retryAfterMs });

const tightest = (decisions: Decision[], checked = decisions.map(() => enforced)) =>
  toCheckResult(decisions, checked).tightest.limit;

describe('the result of a check', () => {
  it('is told by the refusal with the longest wait', () => {
    expect(tightest([refusal('a', 1), refusal('b', 3), refusal('c', 2)])).toBe('b');
    expect(tightest([refusal('a', 3), refusal('b', Infinity), decision('c', { remaining: 0 })])).toBe('b');
  });

  it('is told by the first refusal of equal waits', () => {
    expect(tightest([decision('a'), refusal('b', 2), refusal('c', 2)])).toBe('b');
  });

  it('is told by the limit with the least left if all allow', () => {
    expect(tightest([decision('a'), decision('b', { remaining: 2 }), decision('c', { remaining: 3 })])).toBe('b');
  });

  it('is told by the later reset where equally much is left, and by the first of two equal ones', () => {
    expect(tightest([decision('a'), decision('b', { resetAfterMs: 2000 }), decision('c')])).toBe('b');
    expect(tightest([decision('a'), decision('b')])).toBe('a');
  });

  it('has its delay from the longest queue, and none if it is refused', () => {
    const [short, long] = [decision('a', { delayMs: 200 }), decision('b', { delayMs: 500 })];
    expect(toCheckResult([short, long, decision('c')], [enforced, enforced, enforced])).toMatchObject({
      allowed: true,
      delayMs: 500,
    });
    expect(toCheckResult([long, refusal('b', 1)], [enforced, enforced])).toMatchObject({ allowed: false, delayMs: 0 });
  });

  it('is not changed by a limit in shadow mode', () => {
    const decisions = [decision('a'), refusal('b', 9), decision('c', { remaining: 1, delayMs: 500 })];
    const result = toCheckResult(decisions, [enforced, shadow, shadow]);
    expect(result).toEqual({ allowed: true, decisions, tightest: decisions[0], delayMs: 0 });
    expect(tightest([refusal('a', 9), refusal('b', 1)], [shadow, enforced])).toBe('b');
  });

  it('is told by the least that is left where all limits are in shadow mode', () => {
    const decisions = [decision('a'), decision('b', { remaining: 1 })];
    expect(toCheckResult(decisions, [shadow, shadow])).toMatchObject({
      allowed: true,
      tightest: { limit: 'b' },
      delayMs: 0,
    });
  });
});

describe('the tighter one of two decisions', () => {
  it('is the one that leaves less, whatever the order', () => {
    const [more, less] = [decision('more', { resetAfterMs: 9000 }), decision('less', { remaining: 4 })];
    expect([tighter(more, less), tighter(less, more)]).toEqual([less, less]);
  });

  it('is the one that resets later, if both leave as much', () => {
    const [soon, late] = [decision('soon'), decision('late', { resetAfterMs: 1001 })];
    expect([tighter(soon, late), tighter(late, soon)]).toEqual([late, late]);
  });
});
