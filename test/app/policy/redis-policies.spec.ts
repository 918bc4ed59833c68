import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { PolicyOptions } from '../../../lib/index.js';
import { RatesApp, until } from '../overrides/overrides-app.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { PolicyFolder } from './policy-folder.js';

describe('policies of several instances on one Redis', () => {
  const redis = process.env['TEST_REDIS_URL'] as string;
  const folder = new PolicyFolder();
  const apps: RatesApp[] = [];
  let prefix: string;

  async function start(file: string, more: Partial<PolicyOptions> = {}): Promise<RatesApp> {
    const policy = { source: folder.path(file), watch: true, every: 10, ...more };
    const app = await RatesApp.start({ redis, prefix, policy });
    apps.push(app);
    return app;
  }

  beforeEach(() => {
    prefix = freshPrefix();
    for (const level of ['log', 'error'] as const) {
      jest.spyOn(Logger.prototype, level).mockImplementation(() => undefined);
    }
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await Promise.all(apps.splice(0).map((app) => app.close()));
  });

  it('are read by each of them, and count together', async () => {
    await folder.write('one.yaml', 'limits: { login: { rate: 20 } }');
    await folder.write('two.yaml', 'limits: { login: { rate: 30 } }');
    const [one, two] = [await start('one.yaml'), await start('two.yaml')];
    expect([await one.quota(), await two.quota()]).toEqual([20, 30]);
    await one.service.for('login').consume('user:1', 5);
    expect(await two.remaining()).toBe(25);
    await folder.replace('two.yaml', 'limits: { login: { rate: 20 } }');
    await until(() => two.quota(), 20);
    expect([await one.remaining(), await two.remaining()]).toEqual([15, 15]);
  });

  it('give way to what operators change, on all instances and after a restart', async () => {
    await folder.write(
      'one.yaml',
      "limits: { login: { rate: 20 } }\noverrides: { login: { 't:a': { rate: 40, mode: shadow } } }",
    );
    const [one, two] = [await start('one.yaml'), await start('one.yaml')];
    await one.service.setRate('login', { rate: 25 });
    await one.service.setRate('login', { rate: 45 }, { key: 't:a' });
    await one.service.setMode('login', 'off', { key: 't:a' });
    await until(async () => (await two.service.getMode('login', { key: 't:a' })).mode, 'off');
    const three = await start('one.yaml');
    for (const app of [one, two, three]) {
      expect([await app.quota(), await app.quota('login', 't:a')]).toEqual([25, 45]);
      expect(await app.service.getRate('login', { key: 't:a' })).toMatchObject({ source: 'key' });
    }
    await three.service.clearRate('login', { key: 't:a' });
    await three.service.clearMode('login', { key: 't:a' });
    await three.service.clearRate('login');
    for (const app of [one, two, three]) {
      await until(() => app.quota('login', 't:a'), 40);
      await until(() => app.quota(), 20);
      expect(await app.service.getMode('login', { key: 't:a' })).toMatchObject({ mode: 'shadow', source: 'policy' });
    }
  });

  it('keep the counters of a reset apart from those before it', async () => {
    await folder.write('one.yaml', 'limits: { login: { rate: 20 } }');
    const app = await start('one.yaml');
    await app.service.for('login').consume('user:1', 5);
    await app.service.setRate('login', { rate: 20 }, { inherit: 'reset' });
    await app.service.clearRate('login');
    expect(await app.remaining()).toBe(20);
    await folder.replace('one.yaml', 'limits: { login: { rate: 22 } }');
    await until(() => app.quota(), 22);
    expect(await app.remaining()).toBe(22);
  });

  it('hold where an operator changed what no longer fits, as after a deploy', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    await folder.write('one.yaml', 'limits: { login: { interval: 1h } }');
    const app = await start('one.yaml');
    await app.service.setRate('login', { rate: 1_000_003 });
    await folder.replace('one.yaml', 'limits: { login: { interval: 364d, rate: 7 } }');
    await until(() => app.quota(), 7);
    expect(warn.mock.calls.map(([text]) => String(text))).toEqual([
      expect.stringContaining("the changed rate of limit 'login' is ignored"),
    ]);
  });
});
