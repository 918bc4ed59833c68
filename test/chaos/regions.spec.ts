import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { AlgorithmOptions } from '../../lib/index.js';
import { scenarioMs } from '../support/chaos.js';
import { most, mostWithin, mostInWindows, type Use } from '../support/uses.js';
import { World } from '../support/worlds.js';

const RATE = 600;
const INTERVAL_MS = 4000;
/** How far the clocks of the process and of a server of one machine may seem apart. */
const CLOCK_MS = 2;
const SHARES = [0.8, 0.15, 0.05];

const names = ['fixed-window', 'sliding-window', 'sliding-log', 'gcra', 'token-bucket'] as const;
const rated = Object.fromEntries(names.map((algo) => [algo, { algo, rate: RATE, interval: INTERVAL_MS }]));
const CALENDAR: Record<string, AlgorithmOptions> = {
  'calendar-window': { algo: 'calendar-window', rate: 100, period: 'second' },
  budget: { algo: 'budget', limit: 100, period: 'second' },
};
const limits = { ...rated, ...CALENDAR } as Record<string, AlgorithmOptions>;

/** By how many units at most more was used than the limit says. */
function over(name: string, uses: readonly Use[]): number {
  if (name in CALENDAR) return mostInWindows(uses, 1000, CLOCK_MS) - 100;
  const limit = { algo: name, rate: RATE, interval: INTERVAL_MS };
  return Math.max(
    ...[INTERVAL_MS / 4, INTERVAL_MS, 2 * INTERVAL_MS].map(
      (stretchMs) => mostWithin(uses, stretchMs - CLOCK_MS) - most(limit, stretchMs),
    ),
  );
}

describe('three regions', () => {
  it('never use more than the limit while the demand moves from one to another', async () => {
    const world = await World.start({ limits });
    try {
      const demands = Object.keys(limits).map((name) => world.demand(SHARES.map((share) => share * 250), name));
      await sleep(scenarioMs(8000) / 2);
      for (const demand of demands) demand.perSecond = demand.perSecond.toReversed();
      await sleep(scenarioMs(8000) / 2);
      await Promise.all(demands.map((demand) => demand.end()));
      for (const [index, name] of Object.keys(limits).entries()) {
        const { uses, answers } = demands[index]!;
        const t0 = answers[0]!.at;
        const bins = [0,1,2].map((region) => Array.from({ length: 8 }, (_, s) => demands[index]!.allowed(t0 + s * 1000, t0 + s * 1000 + 1000, region)));
        console.log(name, uses.length, answers.length, answers.filter((a) => a.allowed === undefined).length, over(name, uses), JSON.stringify(bins));
        const errs: Record<string, number> = {};
        for (const a of answers) if (a.error) { const k = `${a.region} ${Math.floor((a.at-t0)/500)/2}s ${a.error}`; errs[k]=(errs[k]??0)+1; }
        console.log(JSON.stringify(errs, null, 1));
        expect([name, over(name, uses)]).toEqual([name, Math.min(0, over(name, uses))]);
        expect(uses.length).toBeGreaterThan(RATE);
      }
    } finally {
      await world.stop();
    }
  });
});
