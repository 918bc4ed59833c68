import { afterEach, beforeEach, describe, it } from '@jest/globals';
import { type Limiter, type LimiterService, RateLimitStoreError } from '../../lib/index.js';
import { isLong, until } from '../support/processes/chaos.js';
import { KEY, World } from '../support/redis/worlds.js';

/** How soon the other regions know what one has changed. The short form may share its machine, and proves only that they do. */
const SOON_MS = isLong ? 1000 : undefined;

let world: World;
let limiters: LimiterService[];
let apis: Limiter[];

beforeEach(async () => {
  world = await World.start({ limits: { api: { algo: 'sliding-window', rate: 1000, interval: '1h' } } });
  limiters = world.regions.map((region) => region.limiters);
  apis = limiters.map((each) => each.for('api'));
  // All of them hold units then.
  await use(40);
});
afterEach(() => world.stop());

async function use(times: number): Promise<void> {
  await Promise.all(
    apis.map(async (api) => {
      for (let i = 0; i < times; i++) await until('it is allowed', () => isAllowed(api), SOON_MS);
    }),
  );
}

/** What others see of a change that one of the regions makes. */
async function seenBy(test: (api: Limiter, limiters: LimiterService) => Promise<boolean>): Promise<void> {
  await Promise.all(
    apis.map((api, region) => until(`region ${region} knows`, () => test(api, limiters[region]!), SOON_MS)),
  );
}

/** What it is answered; nothing if a busy server did not answer in time. */
const ask = (api: Limiter) => api.consume(KEY).catch(() => undefined);
/** What is left; nothing if a busy server did not answer in time. */
const look = (api: Limiter) =>
  api
    .peek(KEY)
    .then(({ remaining }) => remaining)
    .catch(() => 0);
/** Makes a change. A busy server may not answer within the timeout; then nobody knows whether it was made, and making it again is safe. */
const change = (make: () => Promise<unknown>) =>
  until('it is changed', () =>
    make().then(
      () => true,
      (error: unknown) => {
        if (error instanceof RateLimitStoreError) return false;
        throw error;
      },
    ),
  );
const isAllowed = async (api: Limiter) => (await ask(api))?.allowed === true;
const isRefused = async (api: Limiter) => (await ask(api))?.allowed === false;

describe('what one of three regions changes', () => {
  it('holds in all of them: a rate', async () => {
    await change(() => limiters[1]!.setRate('api', { rate: 1500 }));
    await seenBy(async (api) => (await ask(api))?.quota === 1500);
    await change(() => limiters[1]!.setRate('api', { rate: 50 }));
    await seenBy(isRefused);
  });

  it('holds in all of them: a mode', async () => {
    await change(() => limiters[1]!.setRate('api', { rate: 50 }));
    await seenBy(isRefused);
    await change(() => limiters[1]!.setMode('api', 'shadow'));
    await seenBy(isAllowed);
  });

  it('holds in all of them: a list', async () => {
    await change(() => limiters[1]!.deny({ identity: KEY }));
    await seenBy(isRefused);
  });

  it('stops units that regions hold: a block, until it ends', async () => {
    await change(() => apis[1]!.block(KEY, '1h'));
    await seenBy(isRefused);
    await change(() => apis[2]!.unblock(KEY));
    await seenBy(isAllowed);
  });

  it('frees what was used: a reset', async () => {
    await use(100);
    await change(() => apis[1]!.reset(KEY));
    await seenBy(async (api) => (await look(api)) > 900);
  });
});
