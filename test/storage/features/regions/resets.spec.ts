import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import type { LimitDefinition } from '../../../../lib/index.js';
import { RegionStore } from '../../../../lib/storage/features/regions/region.store.js';
import { freshPrefix } from '../../../support/limits/stores.js';
import { until } from '../../../support/time/until.js';
import { type AppInRegion, World } from './world.js';

const LIMIT = 40;
const define = {
  plan: { algo: 'budget', limit: LIMIT, period: 'year', scope: 'world' },
} satisfies Record<string, LimitDefinition>;

let world: World;
beforeAll(async () => {
  world = await World.start();
}, 300_000);
afterEach(async () => {
  await world.closeApps();
  jest.restoreAllMocks();
});
afterAll(() => world.stop());

/** Does something once the home is reset, before an instance forgets what its region holds. */
function beforeForget(action: (call: number) => Promise<void>): void {
  const prototype = RegionStore.prototype as unknown as { forget: (counter: unknown) => Promise<void> };
  const { forget } = prototype;
  let calls = 0;
  jest.spyOn(prototype, 'forget').mockImplementation(async function (this: unknown, counter) {
    await action(++calls);
    return forget.call(this, counter);
  });
}

const consume = async (app: AppInRegion) => (await app.limiters.for('plan').consume('a')).allowed;

it.each([
  ['another instance of the region', 'us'],
  ['another region', 'eu'],
] as const)('a reset loses no unit that %s gets in the meantime', async (_, region) => {
  const prefix = freshPrefix();
  const limits = { prefix, define };
  const first = await world.app('us', { limits });
  const second = await world.app(region, { limits });
  let allowed = 0;
  // What a region gives back reaches the home a moment later.
  const useUp = () =>
    until(
      async () => {
        for (const app of [first, second]) if (allowed < LIMIT && (await consume(app))) allowed++;
        return allowed === LIMIT;
      },
      20_000,
      20,
    );
  await useUp();
  allowed = 0;
  let heard = 0;
  beforeForget(async (call) => {
    heard++;
    if (call > 2) return;
    await until(() => consume(second));
    allowed++;
    for (let i = 0; i < 4; i++) if (await consume(second)) allowed++;
  });
  await first.limiters.for('plan').reset('a');
  await until(() => heard >= 2);
  await useUp();
  expect([await consume(first), await consume(second)]).toEqual([false, false]);
});
