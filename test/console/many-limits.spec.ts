import { expect, it, jest } from '@jest/globals';
import type { LimitDefinition } from '../../lib/index.js';
import { CONSOLE_LIMIT } from '../../lib/console/console-limit.js';
import { Lookups } from '../../lib/console/views/lookups.js';
import { createTestingStore, TestClock } from '../../lib/testing/index.js';
import { ConsoleApp, type Lookup, THINGS } from './console-app.js';

it('looks some of many limits up at a time, so that requests have their turn', async () => {
  const define: Record<string, LimitDefinition> = {};
  for (let limit = 0; limit < 240; limit++) define[`limit-${limit}`] = THINGS;
  const app = await ConsoleApp.start({ controllers: [], limits: { define } });
  try {
    // oxlint-disable-next-line typescript/unbound-method -- it is called as one of its class.
    const one = Lookups.prototype.one;
    let asked = 0;
    let most = 0;
    jest.spyOn(Lookups.prototype, 'one').mockImplementation(async function (this: Lookups, ...args) {
      most = Math.max(most, ++asked);
      return one.apply(this, args).finally(() => asked--);
    });
    const { limits } = (await (await app.post('lookup', { identity: 'anna' })).json()) as Lookup;
    expect(limits.map(({ limit }) => limit)).toEqual(Object.keys(define));
    expect(most).toBeLessThanOrEqual(50);
  } finally {
    jest.restoreAllMocks();
    await app.close();
  }
});

it('counts a look-up by the limits that it reads', async () => {
  const define: Record<string, LimitDefinition> = {};
  for (let limit = 0; limit < 150; limit++) define[`limit-${limit}`] = THINGS;
  // No unit comes back meanwhile, however busy the machine is.
  const store = createTestingStore({ clock: new TestClock() });
  const app = await ConsoleApp.start({ controllers: [], limits: { define, store } });
  try {
    const { lookupBudget } = app.console;
    const takes = Array.from({ length: 20 }, () => lookupBudget.take('ip:203.0.113.7'));
    const outcomes = await Promise.allSettled(takes);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(Math.floor(CONSOLE_LIMIT.burst / 30));
    expect(outcomes.at(-1)).toMatchObject({ reason: { status: 429, retryAfter: expect.any(Number) } });
    await lookupBudget.take('ip:203.0.113.8');
  } finally {
    await app.close();
  }
});
