import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Cluster } from 'ioredis';
import type { RateLimitModuleOptions } from '../../../lib/index.js';
import { startCluster, startSentinel } from '../../support/redis/redis-servers.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { exceptReadings, RatesApp, recordOf, until } from './overrides-app.js';

describe('changed rates', () => {
  const apps: RatesApp[] = [];
  const cleanups: (() => unknown)[] = [];
  let prefix: string;

  const start = async (options: RateLimitModuleOptions): Promise<RatesApp> => {
    const app = await RatesApp.start({ prefix, ...options });
    apps.push(app);
    return app;
  };

  beforeEach(() => {
    prefix = freshPrefix();
    jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    // Instances learn of changes from messages only.
    jest.spyOn(globalThis, 'setTimeout').mockImplementation(exceptReadings);
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await Promise.all(apps.splice(0).map((app) => app.close()));
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  });

  it('reach other instances through Sentinels', async () => {
    const servers = await startSentinel();
    cleanups.push(() => servers.stop());
    const { sentinels, name } = servers;
    const [one, two] = [await start({ redis: { sentinels, name } }), await start({ redis: { sentinels, name } })];
    await one.service.setRate('login', { rate: 20 });
    await until(() => two.quota(), 20);
    expect(await one.quota()).toBe(20);
  });

  it('reach other instances on a Cluster, and are read again after a cut', async () => {
    const cluster = await startCluster();
    cleanups.push(() => cluster.stop());
    const client = new Cluster(cluster.nodes);
    cleanups.push(() => client.quit());
    const one = await start({ redis: { nodes: cluster.nodes } });
    const two = await start({ redis: client });
    for (let round = 1; round <= 10; round++) {
      await one.service.setRate('login', { rate: 10 + round });
      await until(() => two.quota(), 10 + round);
    }
    await Promise.all(client.nodes('master').map((node) => node.call('CLIENT', 'KILL', 'TYPE', 'pubsub')));
    await client.hset(`${prefix}:rates`, 'login', recordOf({ patch: { rate: 50 }, version: 99 }));
    await Promise.all([until(() => one.quota(), 50), until(() => two.quota(), 50)]);
    await two.service.setRate('login', { rate: 60 });
    await until(() => one.quota(), 60);
  });
});
