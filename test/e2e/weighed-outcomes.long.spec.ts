import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, type INestApplication, Logger, Module, Param, Res } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Redis } from 'ioredis';
import { type Count, LimiterService, type LimitDefinition, RateLimit, RateLimitModule } from '../../lib/index.js';
import { connectRedis, ManualClock, storeKinds } from '../support/limits/stores.js';
import { until } from '../support/time/until.js';

@RateLimit('api')
@Controller()
class AnswersController {
  @Get(':status')
  answer(@Param('status') status: string, @Res() response: { status(code: number): { end(): void } }) {
    response.status(Number(status)).end();
  }

  @Get('twice/:status')
  @RateLimit('failures')
  answerTwice(@Param('status') status: string, @Res() response: { status(code: number): { end(): void } }) {
    this.answer(status, response);
  }
}

const byStatus: Count = ({ statusCode }) => (statusCode! >= 400 ? 5 : 1);

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

describe.each(Object.entries(storeKinds))('a weight by outcome on %s', (_, makeStore) => {
  async function start(count: Count, more: Partial<LimitDefinition> = {}) {
    const limit = { algo: 'fixed-window', rate: 10, interval: '1h', count, ...more } as LimitDefinition;
    class AppModule {}
    Module({
      imports: [
        RateLimitModule.forRoot({
          store: makeStore(new ManualClock(), redis),
          define: { api: limit, failures: { algo: 'fixed-window', rate: 10, interval: '1h', count: 'failed' } },
        }),
      ],
      controllers: [AnswersController],
    })(AppModule);
    const app: INestApplication = await NestFactory.create(AppModule, { logger: false });
    await app.listen(0, '127.0.0.1');
    const remaining = async (name = 'api') => (await app.get(LimiterService).for(name).peek('ip:127.0.0.1')).remaining;
    return {
      app,
      get: async (status: number | string) => (await fetch(`${await app.getUrl()}/${status}`)).status,
      becomes: async (left: number, name?: string) => {
        await until(async () => (await remaining(name)) === left, 20_000);
        expect(await remaining(name)).toBe(left);
      },
    };
  }

  it('charges more for what fails, and refuses once that is too much', async () => {
    const { app, get, becomes } = await start(byStatus);
    await expect(get(200)).resolves.toBe(200);
    await becomes(9);
    await expect(get(500)).resolves.toBe(500);
    await becomes(4);
    await expect(get(500)).resolves.toBe(500);
    await becomes(0);
    await expect(get(200)).resolves.toBe(429);
    await app.close();
  });

  it('gives back what was charged first beyond it', async () => {
    const { app, get, becomes } = await start(byStatus, { cost: 5 });
    await get(200);
    await becomes(9);
    await get(404);
    await becomes(4);
    await app.close();
  });

  it('holds up no other limit if it never answers', async () => {
    const { app, get, becomes } = await start(() => new Promise<never>(() => undefined));
    await expect(get('twice/200')).resolves.toBe(200);
    await becomes(10, 'failures');
    await becomes(9);
    await app.close();
  });

  it('may be 0, and may be promised', async () => {
    const { app, get, becomes } = await start(({ failed }) => Promise.resolve(failed ? 3 : 0));
    await get(200);
    await becomes(10);
    await get(404);
    await becomes(7);
    await app.close();
  });

  it.each([-1, 1.5, Number.NaN, Infinity, Number.MAX_SAFE_INTEGER + 1])('counts as charged for %d', async (wrong) => {
    const warned = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    const errors = jest.spyOn(Logger.prototype, 'error').mockReturnValue();
    const { app, get, becomes } = await start(() => wrong);
    await get(200);
    await until(() => warned.mock.calls.length + errors.mock.calls.length > 0);
    expect(JSON.stringify([warned.mock.calls, errors.mock.calls])).toContain(
      "the function 'count' of limit 'api' failed",
    );
    await becomes(9);
    await app.close();
  });
});
