import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { OVERRIDE_STORE } from '../../lib/app/config/tokens.js';
import type { OverrideStore } from '../../lib/app/overrides/override-store.js';
import { freshPrefix } from '../support/limits/stores.js';
import {
  type Changed,
  ConsoleApp,
  type KeyChanged,
  type Problem,
  type RollbackPreview,
  THINGS,
} from './console-app.js';

const define = { things: THINGS, others: THINGS };

describe.each([
  ['in process', () => ({ define })],
  ['on Redis', () => ({ define, redis: process.env['TEST_REDIS_URL']!, prefix: freshPrefix() })],
])('while others change something, %s,', (_, limits) => {
  let app: ConsoleApp;

  const start = async () => (app = await ConsoleApp.start({ limits: limits() }));
  afterEach(async () => {
    jest.restoreAllMocks();
    await app.close();
  });

  /** Lets somebody else change something in the last moment: when all is read, and nothing is written. */
  const inTheLastMoment = (change: () => Promise<unknown>): void => {
    const store = app.nest.get<OverrideStore>(OVERRIDE_STORE, { strict: false });
    const write = store.write.bind(store);
    jest.spyOn(store, 'write').mockImplementationOnce(async (own) => {
      await change();
      return write(own);
    });
  };
  /** Lets somebody else change something as soon as a change is made. */
  const rightAfter = (change: () => Promise<unknown>): void => {
    const store = app.nest.get<OverrideStore>(OVERRIDE_STORE, { strict: false });
    const write = store.write.bind(store);
    jest.spyOn(store, 'write').mockImplementationOnce(async (own) => {
      const done = await write(own);
      await change();
      return done;
    });
  };
  const rateOf = async (limit: string, key?: string) => {
    const { options } = await app.service.getRate(limit, key === undefined ? {} : { key });
    return (options as { rate: number }).rate;
  };
  const setRate = (limit: string, rate: number) => app.change<Changed>('rates/set', { limit, patch: { rate } });
  const refusal = async (path: string, body: object) => {
    const response = await app.post(path, { reason: 'a test', ...body });
    return [response.status, ((await response.json()) as Problem).detail];
  };

  it('an undo takes back its change alone', async () => {
    await start();
    const { version } = await setRate('things', 20);
    inTheLastMoment(() => app.service.setRate('others', { rate: 30 }));
    expect(await app.change<Changed>('undo', { version })).toEqual({ changed: true });
    expect([await rateOf('things'), await rateOf('others')]).toEqual([10, 30]);
  });

  it('an undo is refused if that would take back what somebody has just changed', async () => {
    await start();
    const { version } = await setRate('things', 20);
    await setRate('others', 20);
    inTheLastMoment(() => app.service.setRate('things', { rate: 30 }));
    expect(await refusal('undo', { version })).toEqual([
      409,
      expect.stringContaining('change 3 has changed the same setting since'),
    ]);
    expect(await rateOf('things')).toBe(30);
  });

  it('a rollback that was shown is refused', async () => {
    await start();
    await setRate('things', 20);
    const { newest } = await app.read<RollbackPreview>('rollback?version=0');
    inTheLastMoment(() => app.service.setRate('others', { rate: 30 }));
    expect(await refusal('rollback', { version: 0, newest })).toEqual([
      409,
      expect.stringContaining('someone has made another change since'),
    ]);
    expect([await rateOf('things'), await rateOf('others')]).toEqual([20, 30]);
  });

  it('the version that a change returns is its own', async () => {
    await start();
    rightAfter(() => app.service.setRate('things', { rate: 30 }));
    expect((await setRate('things', 20)).version).toBe(1);
    rightAfter(() => app.service.setMode('things', 'off'));
    const mode = { limit: 'things', mode: 'shadow' };
    expect((await app.change<Changed>('modes/set', mode)).version).toBe(3);
    rightAfter(() => app.service.deny({ identity: 'bert' }));
    expect((await app.change<Changed>('lists', { list: 'deny', identity: 'anna' })).version).toBe(5);
    rightAfter(() => app.service.unlist({ identity: 'bert' }));
    expect((await app.change<Changed>('lists/remove', { identity: 'anna' })).version).toBe(7);
    rightAfter(() => app.service.setRate('things', { rate: 50 }, { key: 'bert' }));
    const own = { limit: 'things', identity: 'bert', patch: { rate: 40 } };
    expect((await app.change<KeyChanged>('keys/override', own)).version).toBe(9);
    rightAfter(() => app.service.setRate('things', { rate: 60 }, { key: 'bert' }));
    const cleared = { limit: 'things', identity: 'bert' };
    expect((await app.change<KeyChanged>('keys/clear-override', cleared)).version).toBe(11);
  });

  it('a candidate is set, enforced and cleared next to the rate that somebody has just set', async () => {
    await start();
    await setRate('things', 20);
    inTheLastMoment(() => app.service.setRate('things', { rate: 30 }));
    await app.change('candidates/set', { limit: 'things', patch: { rate: 5 } });
    expect(await app.service.getRate('things')).toMatchObject({ options: { rate: 30 }, candidate: { rate: 5 } });
    inTheLastMoment(() => app.service.setRate('things', { rate: 40, candidate: { rate: 6 } }));
    await app.change('candidates/clear', { limit: 'things' });
    expect(await rateOf('things')).toBe(40);
    expect((await app.service.getRate('things')).candidate).toBeUndefined();
    await app.change('candidates/set', { limit: 'things', patch: { rate: 7 } });
    inTheLastMoment(() => app.service.setRate('things', { rate: 40, candidate: { rate: 8 } }));
    await app.change('candidates/enforce', { limit: 'things' });
    expect(await rateOf('things')).toBe(8);
  });
});
