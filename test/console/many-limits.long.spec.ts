import { describe, expect, it, jest } from '@jest/globals';
import type { LimitDefinition } from '../../lib/index.js';
import { createTestingStore, TestClock } from '../../lib/testing/index.js';
import { CONSOLE_LIMIT, ConsoleApp, type Incidents, type Lookup, type Overview, THINGS } from './console-app.js';

it('looks some of many limits up at a time, so that requests have their turn', async () => {
  const define: Record<string, LimitDefinition> = {};
  for (let limit = 0; limit < 240; limit++) define[`limit-${limit}`] = THINGS;
  const app = await ConsoleApp.start({ controllers: [], limits: { define } });
  try {
    const { lookups } = app.console;
    const one = lookups.one.bind(lookups);
    let asked = 0;
    let most = 0;
    jest.spyOn(lookups, 'one').mockImplementation(async (...args) => {
      most = Math.max(most, ++asked);
      return one(...args).finally(() => asked--);
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

/** An app in which each of these limits has decided something. */
async function startWith(limits: number): Promise<ConsoleApp> {
  const define: Record<string, LimitDefinition> = {};
  for (let limit = 0; limit < limits; limit++) define[`limit-${limit}`] = THINGS;
  const app = await ConsoleApp.start({ controllers: [], limits: { define } });
  for (let limit = 0; limit < limits; limit++) await app.service.for(`limit-${limit}`).consume('anna', 1 + (limit % 3));
  for (let call = 0; call < 12; call++) await app.service.for('limit-516').consume('bert');
  app.console.recorder.fold();
  return app;
}

describe('the counts of many limits', () => {
  it('are those of each limit, with 517 of them', async () => {
    const app = await startWith(517);
    try {
      const { totals, unknown } = await app.read<Overview>('overview');
      expect(Object.keys(totals)).toHaveLength(517);
      expect(Object.values(totals).every(({ allowed }) => allowed > 0)).toBe(true);
      expect(unknown).toEqual([]);
      expect(await app.read<Incidents>('incidents')).toMatchObject({ incidents: [] });
    } finally {
      await app.close();
    }
  });

  it('say which are not known, if there are more than 2000', async () => {
    const app = await startWith(2030);
    try {
      const { totals, unknown } = await app.read<Overview>('overview');
      expect(unknown).toEqual(Array.from({ length: 30 }, (_, index) => `limit-${2000 + index}`));
      expect(totals['(others)']).toMatchObject({ allowed: 30 });
      expect(Object.keys(totals)).toHaveLength(2001);
      // Seconds in which a limit was quiet say nothing about where it is counted.
      expect(await app.console.incidents.tick()).not.toHaveProperty('unknown');
    } finally {
      await app.close();
    }
  });

  it('show what one of them refuses, and whom, before anybody looks', async () => {
    const app = await startWith(517);
    try {
      for (let call = 0; call < 30; call++) await app.service.for('limit-400').consume(`user-${call % 2}`, 10);
      app.console.recorder.fold();
      const { incidents } = await app.read<Incidents>('incidents');
      expect(incidents).toMatchObject([
        { kind: 'refused', limit: 'limit-400', refused: 28, keys: [{ count: 14 }, { count: 14 }] },
      ]);
    } finally {
      await app.close();
    }
  });
});
