import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Inject, Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import { LimiterService, RateLimit, type Store } from '../../lib/index.js';
import { until } from '../support/time/until.js';
import { type Framework, adapters, HttpApp } from './http-app.js';

/** So slow that whoever waits for it does not live to see it. */
const SLOW = { rate: 1, interval: '1h' } as const;
const held = { algo: 'leaky-bucket', ...SLOW, queue: 10, key: 'global' } as const;

@Controller()
class WaitingController {
  constructor(@Inject(LimiterService) private readonly limiters: LimiterService) {}

  @Get('held')
  @RateLimit('held')
  held() {}

  @Get('acquires')
  async acquires() {
    await this.limiters.for({ name: 'acquired', algo: 'gcra', ...SLOW }).acquire('global');
  }

  @Get('holds')
  async holds() {
    const slots = this.limiters.for({ name: 'slots', algo: 'concurrency', limit: 1, ttl: '1h' });
    await slots.hold('global', () => undefined, { timeout: '1h' });
  }
}

/** Uses limits while the app shuts down. */
@Injectable()
class LateService implements BeforeApplicationShutdown {
  readonly told: unknown[] = [];
  constructor(@Inject(LimiterService) private readonly limiters: LimiterService) {}

  async beforeApplicationShutdown() {
    const limiter = this.limiters.for({ name: 'late', algo: 'gcra', ...SLOW });
    for (let i = 0; i < 2; i++) {
      const told = await limiter.acquire('global').catch((error: unknown) => error);
      this.told.push(told);
    }
  }
}

describe.each(adapters)('an app that shuts down, with %s', (framework: Framework) => {
  let app: HttpApp;
  afterEach(() => app.store.close());

  const start = async () => {
    app = await HttpApp.start(framework, {
      limits: { define: { held } },
      controllers: [WaitingController],
      providers: [LateService],
    });
    return app;
  };

  it('refuses the requests that it holds, and gives their slots back', async () => {
    const { nest } = await start();
    const limiter = nest.get(LimiterService).for('held');
    const used = async () => held.queue + 1 - (await limiter.peek('global')).remaining;
    await app.get('/held');
    const answers = [app.get('/held'), app.get('/held')];
    await until(async () => (await used()) === 3);
    await nest.close();
    for (const answer of await Promise.all(answers)) {
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
      expect(await answer.json()).toMatchObject({ statusCode: 503, message: 'The server is shutting down' });
    }
    expect(await used()).toBe(1);
  });

  it('refuses code that waits for units', async () => {
    const { nest, store } = await start();
    await app.get('/acquires');
    const limiters = nest.get(LimiterService);
    const lease = (await limiters.for({ name: 'slots', algo: 'concurrency', limit: 1, ttl: '1h' }).consume('global'))
      .lease!;
    const waiting = [app.get('/acquires'), app.get('/holds')];
    const reserved: string[] = [];
    const watched = store as Store;
    const reserve = watched.reserve.bind(watched);
    watched.reserve = (reservation) => {
      reserved.push(reservation.limit.name);
      return reserve(reservation);
    };
    await until(() => reserved.includes('acquired') && reserved.includes('slots'));
    await nest.close();
    for (const answer of await Promise.all(waiting)) expect(answer.status).toBe(500);
    await lease.release();
  });

  it('lets code take units meanwhile, and never wait for them', async () => {
    const { nest } = await start();
    const late = nest.get(LateService);
    await nest.close();
    expect(late.told).toMatchObject([
      { allowed: true },
      { name: 'RateLimitStoreError', message: 'the app is shutting down' },
    ]);
  });
});
