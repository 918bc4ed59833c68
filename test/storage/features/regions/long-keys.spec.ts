import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { LimitDefinition } from '../../../../lib/index.js';
import { Home } from '../../../../lib/storage/features/regions/home.js';
import { freshPrefix } from '../../../support/limits/stores.js';
import { stopTime } from '../../../support/time/stopped-time.js';
import { type AppInRegion, World } from './world.js';

const define = {
  small: { algo: 'fixed-window', rate: 3, interval: '1h', scope: 'world' },
} satisfies Record<string, LimitDefinition>;

/** So long that a server keeps its hash. */
const KEY = 'k'.repeat(1000);

/** How often a region asks about units that the home has refused, in milliseconds. */
const ASK_AGAIN_MS = 1000;

describe('a long key of a limit over several regions', () => {
  let world: World;
  let us: AppInRegion;

  beforeAll(async () => {
    world = await World.start();
    us = await world.app('us', { limits: { prefix: freshPrefix(), define } });
    // The first call learns the home's time.
    await us.limiters.for('small').peek('other');
  }, 300_000);
  afterEach(() => void jest.useRealTimers());
  afterAll(() => world.stop());

  it('asks the home once in a while when it refuses, not for each request', async () => {
    const limiter = us.limiters.for('small');
    stopTime();
    while ((await limiter.consume(KEY)).allowed);
    const grant = jest.spyOn(Home.prototype, 'grant');
    const refuse = async () => {
      for (let refused = 0; refused < 100; refused++) expect((await limiter.consume(KEY)).allowed).toBe(false);
    };
    for (let seconds = 0; seconds <= 3; seconds++) {
      await refuse();
      expect(grant).toHaveBeenCalledTimes(seconds);
      jest.advanceTimersByTime(ASK_AGAIN_MS + 1);
    }
  });
});
