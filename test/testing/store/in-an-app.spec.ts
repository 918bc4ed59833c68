import { describe, expect, it } from '@jest/globals';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LimiterService, RateLimitModule, type RateLimitModuleOptions } from '../../../lib/index.js';
import type { CounterChanges } from '../../../lib/testing/store/index.js';
import { MapStore } from './map-store.js';

/** A database that never answers. */
class SilentStore extends MapStore {
  isSilent = true;

  protected override transact<T>(
    keys: readonly string[],
    change: (values: readonly (string | undefined)[]) => CounterChanges<T>,
  ): Promise<T> {
    return this.isSilent ? new Promise(() => undefined) : super.transact(keys, change);
  }
}

async function start(options: RateLimitModuleOptions) {
  class AppModule {}
  Module({ imports: [RateLimitModule.forRoot(options)] })(AppModule);
  const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  return { app, limiters: app.get(LimiterService) };
}

const limit = { name: 'login', algo: 'fixed-window', rate: 2, interval: '1h' } as const;

describe('a store of an app', () => {
  it('counts for all of its instances', async () => {
    const store = new MapStore();
    const [one, two] = [await start({ store }), await start({ store })];
    const answers = [];
    for (const { limiters } of [one, two, one]) answers.push((await limiters.for(limit).consume('a')).allowed);
    expect(answers).toEqual([true, true, false]);
    await Promise.all([one.app.close(), two.app.close()]);
  });

  it('may have members of its own with any name', async () => {
    class Named extends MapStore {
      constructor(
        readonly clock = 'mine',
        readonly prefix = 1,
      ) {
        super();
      }
    }
    const { app, limiters } = await start({ store: new Named() });
    await expect(limiters.for(limit).consume('a')).resolves.toMatchObject({ allowed: true, remaining: 1 });
    await app.close();
  });

  it('keeps no request waiting for longer than the timeout', async () => {
    const store = new SilentStore();
    const { app, limiters } = await start({ store, timeout: 20, onStoreError: 'deny' });
    await expect(limiters.for(limit).consume('a')).rejects.toThrow('the store did not answer within 20 ms');
    await expect(limiters.for(limit).block('a', '1m')).rejects.toThrow('the store did not answer within 20 ms');
    await app.close();
  });

  it('refuses a limit with what it does not keep, and names it', async () => {
    const { app, limiters } = await start({ store: new MapStore() });
    const used = limiters.for({ ...limit, name: 'used', usage: '400d' });
    await expect(used.consume('a')).rejects.toThrow("limit 'used' has 'usage', which a MapStore does not support");
    await app.close();
  });

  it('is replaced by the process while it does not answer, as Redis is', async () => {
    const { app, limiters } = await start({ store: new SilentStore(), timeout: 20 });
    await expect(limiters.for(limit).consume('a')).resolves.toMatchObject({ allowed: true, source: 'fallback' });
    await app.close();
  });
});
