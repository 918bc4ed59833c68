import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { isLong, scenarioMs, until } from '../support/processes/chaos.js';
import { TIMEOUT_MS, World } from '../support/redis/worlds.js';
import { WorldLimits } from '../support/redis/world-limits.js';

const all = new WorldLimits(600, 4000);
/** More is asked than the limits allow. */
const ASKED_A_SECOND = 250;
const SHARES = [0.8, 0.15, 0.05];
/** How far beyond the deadline a request may be answered, in the time that this process had: some turns of the event loop. */
const SLACK_MS = isLong ? 20 : 50;

let world: World | undefined;
afterEach(async () => {
  jest.restoreAllMocks();
  await world?.stop();
  world = undefined;
});

describe('three regions', () => {
  it('never use more than a limit while the demand moves from one to another', async () => {
    world = await World.start(all);
    const rates = SHARES.map((share) => share * ASKED_A_SECOND);
    const demands = all.names.map((name) => world!.demand(rates, name));
    // More than one region holds at once. How soon these units are used depends on how busy the machine is.
    const areUsed = () => demands.every(({ uses }) => uses.length > all.rate / 4);
    for (let end = Date.now() + scenarioMs(0), turns = 0; turns < 2 || Date.now() < end || !areUsed(); turns++) {
      await sleep(3500);
      for (const demand of demands) demand.perSecond = demand.perSecond.toReversed();
    }
    for (const [index, name] of all.names.entries()) {
      const { uses } = await demands[index]!.end();
      expect([name, all.over(name, uses)]).toEqual([name, 0]);
    }
  });

  it('keep nobody waiting while two of them are cut off, and then use no more than the limit', async () => {
    world = await World.start(all);
    const demands = all.names.map((name) => world!.demand([60, 60, 60], name));
    const [, us, ap] = world.regions;
    const lasts = isLong ? 10_000 : 2500;
    const untilUsed = (what: string) => {
      const since = Date.now();
      // The latest of many answers: looking through all of them takes the time that the apps need.
      const usedIn = (region: number) =>
        demands.every(({ answers }) => {
          const latest = answers.findLast((each) => each.allowed === true && each.region === region);
          return latest !== undefined && latest.at >= since;
        });
      return until(what, () => usedIn(1) && usedIn(2));
    };
    for (let end = Date.now() + scenarioMs(0), cuts = 0; cuts === 0 || Date.now() < end; cuts++) {
      await untilUsed('all are allowed');
      us!.proxy.cut();
      // What is held back arrives in the end.
      ap!.proxy.hold('all');
      await sleep(lasts);
      us!.proxy.mend();
      ap!.proxy.pass();
    }
    await untilUsed('all are allowed again');
    await sleep(all.intervalMs / 2);
    for (const [index, name] of all.names.entries()) {
      const { uses, answers } = await demands[index]!.end();
      expect([name, all.over(name, uses)]).toEqual([name, 0]);
      expect(Math.max(...answers.map(({ tookMs }) => tookMs))).toBeLessThan(TIMEOUT_MS + SLACK_MS);
      expect(answers.some(({ allowed }) => allowed === undefined)).toBe(true);
    }
  });

  const exact = ['fixed-window', 'sliding-log', 'budget'];
  it.each(isLong ? [...exact, 'sliding-window', 'calendar-window'] : exact)(
    'use all units of a %s, though some of them held units that they do not need',
    async (algo) => {
      const rate = 300;
      const calendar = algo === 'calendar-window' || algo === 'budget';
      const limit = calendar ? { period: 'year' } : { interval: '1h' };
      const amount = algo === 'budget' ? { limit: rate } : { rate };
      // A unit that a request was charged without waiting for it would be missing.
      world = await World.start({ limits: { api: { algo, ...amount, ...limit } as never }, isPatient: true });
      const demand = world.demand([30, 30, 30]);
      await sleep(1500);
      // The other two are idle.
      demand.perSecond = [0, 60, 0];
      await until('all units are used', () => demand.uses.length >= rate);
      await sleep(500);
      expect((await demand.end()).uses).toHaveLength(rate);
    },
  );
});
