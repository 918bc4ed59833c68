import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, Get, HttpException, Param } from '@nestjs/common';
import { LimiterService, RateLimit, RateLimitDecision, type RequestDecision } from '../../../../lib/index.js';
import { HttpApp } from '../../../e2e/http-app.js';
import { until } from '../../../support/time/until.js';

@Controller()
class Routes {
  @Get('answers/:status')
  @RateLimit('calls')
  answer(@Param('status') status: string) {
    if (status !== '200') throw new HttpException('an answer', Number(status));
    return 'welcome';
  }

  @Get('tokens/:used')
  @RateLimit('tokens')
  async tokens(@Param('used') used: string, @RateLimitDecision() decision: RequestDecision) {
    await decision.settle(Number(used));
    return 'welcome';
  }
}

describe('the usage of routes', () => {
  let app: HttpApp;
  let limiters: LimiterService;

  beforeAll(async () => {
    app = await HttpApp.start('express', {
      controllers: [Routes],
      limits: {
        define: {
          calls: { algo: 'fixed-window', rate: 5, interval: '1h', key: 'global', count: 'succeeded', usage: '40d' },
          tokens: { algo: 'token-bucket', rate: 100, interval: '1h', key: 'global', cost: 20, usage: '40d' },
        },
      },
    });
    limiters = app.nest.get(LimiterService);
  });
  afterAll(() => app.close());

  const totalOf = async (name: string) => (await limiters.for(name).usage('global')).total;

  it('lacks requests that do not count in the end, and those that are refused', async () => {
    await app.get('/answers/200');
    await app.get('/answers/404');
    await app.get('/answers/500');
    await until(async () => (await totalOf('calls')) === 1);
    for (let request = 0; request < 6; request++) await app.get('/answers/200');
    expect(await totalOf('calls')).toBe(5);
  });

  it('is what requests were settled at', async () => {
    await app.get('/tokens/5');
    expect(await totalOf('tokens')).toBe(5);
    await app.get('/tokens/27');
    expect(await totalOf('tokens')).toBe(32);
  });

  it('has nothing of those who are exempt', async () => {
    await limiters.allow({ identity: 'global' });
    await app.get('/tokens/27');
    expect(await totalOf('tokens')).toBe(32);
  });
});
