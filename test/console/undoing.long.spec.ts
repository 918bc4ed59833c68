import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type Changed,
  ConsoleApp,
  type KeyChanged,
  type Problem,
  type RollbackPreview,
  THINGS,
} from './console-app.js';

import { freshPrefix } from '../support/limits/stores.js';

const REASON = { reason: 'a test' };

describe('undoing a change', () => {
  let app: ConsoleApp;

  beforeEach(async () => {
    app = await ConsoleApp.start({
      limits: {
        define: { things: THINGS, others: THINGS },
        redis: process.env['TEST_REDIS_URL']!,
        prefix: freshPrefix(),
      },
    });
  });
  afterEach(() => app.close());

  const rateOf = async (limit: string, key?: string) => {
    const { options } = await app.service.getRate(limit, key === undefined ? {} : { key });
    return (options as { rate: number }).rate;
  };
  const setRate = (limit: string, rate: number, more: object = {}) =>
    app.change<Changed>('rates/set', { limit, patch: { rate }, ...REASON, ...more });

  it('says the values before and after, and takes back that change alone', async () => {
    const first = await setRate('things', 20);
    expect(first).toMatchObject({ changed: true, before: 'gcra:10/1h', after: 'gcra:20/1h', version: 1 });
    const second = await setRate('others', 30);
    expect(await app.change<Changed>('undo', { version: first.version, ...REASON })).toEqual({ changed: true });
    expect([await rateOf('things'), await rateOf('others')]).toEqual([10, 30]);
    expect(await app.change<Changed>('undo', { version: second.version, ...REASON })).toEqual({ changed: true });
    expect(await rateOf('others')).toBe(10);
  });

  it('restores what held before, with its end', async () => {
    await setRate('things', 20, { expiresIn: '1h' });
    const { version } = await setRate('things', 40);
    await setRate('others', 30);
    await app.change<Changed>('undo', { version, ...REASON });
    const { override } = await app.service.getRate('things');
    expect(override).toMatchObject({ patch: { rate: 20 } });
    expect(override!.expiresAt! - Date.now()).toBeLessThanOrEqual(3_600_000);
    expect(override!.expiresAt! - Date.now()).toBeGreaterThan(3_500_000);
  });

  it('is refused if a later change stands on it, or if there is none', async () => {
    const { version } = await setRate('things', 20);
    await setRate('things', 40);
    const refused = await app.post('undo', { version, ...REASON });
    expect([refused.status, ((await refused.json()) as Problem).detail]).toEqual([
      409,
      expect.stringContaining('change 2 has changed the same setting since'),
    ]);
    expect(await rateOf('things')).toBe(40);
    expect((await app.post('undo', { version: 99, ...REASON })).status).toBe(404);
    expect((await app.post('undo', { version: 0, ...REASON })).status).toBe(400);
  });

  it('takes back modes, entries of lists, and rates of keys', async () => {
    const mode = await app.change<Changed>('modes/set', { limit: 'things', mode: 'shadow', ...REASON });
    expect(mode).toMatchObject({ before: 'enforce', after: 'shadow' });
    const listed = await app.change<Changed>('lists', { list: 'deny', identity: 'anna', ...REASON });
    const key = { limit: 'things', identity: 'bert', patch: { rate: 99 }, ...REASON };
    const own = await app.change<KeyChanged>('keys/override', key);
    expect([own.before!.quota, own.state.quota]).toEqual([10, 99]);
    await setRate('others', 30);
    for (const { version } of [mode, listed, own]) {
      expect(version).toEqual(expect.any(Number));
      expect(await app.change<Changed>('undo', { version, ...REASON })).toEqual({ changed: true });
    }
    expect((await app.service.getMode('things')).mode).toBe('enforce');
    expect((await app.service.listEntries()).entries).toEqual([]);
    expect(await rateOf('things', 'bert')).toBe(10);
    expect(await rateOf('others')).toBe(30);
  });
});

describe('a rollback', () => {
  let app: ConsoleApp;

  beforeEach(async () => {
    app = await ConsoleApp.start({
      limits: {
        define: { things: THINGS, others: THINGS },
        redis: process.env['TEST_REDIS_URL']!,
        prefix: freshPrefix(),
      },
    });
  });
  afterEach(() => app.close());

  it('says first what it would undo, each thing once', async () => {
    const { service } = app;
    await service.setRate('things', { rate: 20 });
    await service.setRate('things', { rate: 30 });
    await service.setMode('others', 'shadow');
    await service.deny({ identity: 'anna' });
    await service.unlist({ identity: 'anna' });
    const preview = await app.read<RollbackPreview>('rollback?version=1');
    expect(preview).toEqual({
      version: 1,
      newest: 5,
      undone: [
        { action: 'mode', limit: 'others', key: null, before: 'shadow' },
        { action: 'rate', limit: 'things', key: null, before: 'rate: 30', after: 'rate: 20' },
      ],
    });
    const { newest } = preview;
    expect(await app.change<Changed>('rollback', { version: 1, newest, ...REASON })).toEqual({ changed: true });
    expect((await service.getRate('things')).options).toMatchObject({ rate: 20 });
    expect((await app.read<RollbackPreview>('rollback?version=6')).undone).toEqual([]);
  });

  it('is refused if someone has made another change since', async () => {
    const { service } = app;
    await service.setRate('things', { rate: 20 });
    const { newest } = await app.read<RollbackPreview>('rollback?version=0');
    await service.setRate('others', { rate: 20 });
    const refused = await app.post('rollback', { version: 0, newest, ...REASON });
    expect(refused.status).toBe(409);
    expect((await service.getRate('things')).options).toMatchObject({ rate: 20 });
  });
});
