import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type CallHandler, Controller, type ExecutionContext, Logger } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import type { Redis } from 'ioredis';
import { firstValueFrom, of } from 'rxjs';
import { type LimitDefinition, LimiterService, RateLimit, RateLimitGuard, RateLimitModule } from '../../lib/index.js';
import { withOwnRedis } from '../support/redis/own-redis.js';
import type { RedisServer } from '../support/redis/redis-servers.js';
import { freshPrefix } from '../support/limits/stores.js';
import { until } from '../support/time/until.js';
import { interceptorOf } from '../support/nest/app-parts.js';
import { PATIENCE } from '../support/redis/patience.mjs';

const leased = (): LimitDefinition => ({
  name: 'leased',
  algo: 'gcra',
  rate: 1_000_000,
  interval: '1h',
  key: 'global',
  prefetch: { units: 1000, ttl: '1m' },
});
const few = (): LimitDefinition => ({ name: 'few', algo: 'fixed-window', rate: 2, interval: '1h', key: 'global' });
/** A function of its own makes it another one than the last. */
const fewWithFunctions = (): LimitDefinition => ({ ...few(), skip: () => false, message: () => 'Too many' });

@Controller()
class Handlers {
  @RateLimit(() => leased())
  leased() {}

  @RateLimit(() => few())
  few() {}

  @RateLimit(() => fewWithFunctions())
  fewWithFunctions() {}

  @RateLimit(() => [{ name: 'address', algo: 'gcra', rate: 5, interval: '1s' }])
  byAddress() {}
}

const next: CallHandler = { handle: () => of('handled') };

function contextOf(handler: keyof Handlers): ExecutionContext {
  const args = ['data', {}];
  const context = {
    getType: () => 'rpc',
    getArgs: () => args,
    getClass: () => Handlers,
    getHandler: () => Handlers.prototype[handler],
  };
  return context as unknown as ExecutionContext;
}

/** Units that were prefetched count for a minute: on a slow machine it would be over before they are used. */
const stopTime = () => jest.spyOn(performance, 'now').mockReturnValue(performance.now());

describe('a function that makes new limits each time', () => {
  let server: RedisServer;
  let redis: Redis;
  let app: TestingModule;

  withOwnRedis((client, started) => {
    [redis, server] = [client, started];
  });
  beforeEach(async () => {
    const module = RateLimitModule.forRoot({ redis: server.url, prefix: freshPrefix(), timeout: PATIENCE });
    app = await Test.createTestingModule({ imports: [module], controllers: [Handlers] }).compile();
    await app.init();
    while (Number((await redis.info('clients')).match(/pubsub_clients:(\d+)/)?.[1] ?? 2) < 2) await redis.ping();
    await redis.config('RESETSTAT');
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await app.close();
  });

  const calls = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);

  async function call(handler: keyof Handlers): Promise<unknown> {
    const context = contextOf(handler);
    await app.get(RateLimitGuard).canActivate(context);
    return firstValueFrom(await interceptorOf(app).intercept(context, next));
  }

  it('uses the units that were prefetched for an equal one', async () => {
    stopTime();
    for (let i = 0; i < 2000; i++) expect(await call('leased')).toBe('handled');
    expect(await calls()).toBeLessThan(50);
  });

  it('in code does so, too', async () => {
    stopTime();
    const service = app.get(LimiterService);
    for (let i = 0; i < 2000; i++) expect((await service.for(leased()).consume('user:1')).allowed).toBe(true);
    expect(await calls()).toBeLessThan(50);
  });

  it.each(['few', 'fewWithFunctions'] as const)('remembers what an equal one refused: %s', async (handler) => {
    for (let i = 0; i < 2; i++) await call(handler);
    await expect(call(handler)).rejects.toThrow();
    await until(async () => {
      const before = await calls();
      await expect(call(handler)).rejects.toThrow();
      return (await calls()) === before;
    });
    const before = await calls();
    for (let i = 0; i < 200; i++) await expect(call(handler)).rejects.toThrow();
    expect(await calls()).toBe(before);
  });

  it('warns once', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    for (let i = 0; i < 20; i++) expect(await call('byAddress')).toBe('handled');
    expect(warn.mock.calls).toEqual([[expect.stringMatching(/^limit 'address' does not apply/)]]);
  });
});
