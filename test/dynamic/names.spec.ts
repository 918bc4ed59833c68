import { afterEach, expect, it } from '@jest/globals';
import { type ExecutionContext, Injectable } from '@nestjs/common';
import { LimiterService, type LimitResolver, type ModuleLimit, RateLimitConfigError } from '../../lib/index.js';
import { frameworks, HttpApp } from '../e2e/http-app.js';
import { headerOf, OpenController, reported } from './dynamic-app.js';

const plan = { name: 'plan', algo: 'fixed-window', rate: 10, interval: '1h' } as const;

@Injectable()
class PlanLimits implements LimitResolver {
  resolve() {
    return plan;
  }
}

let app: HttpApp | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

const planOf = (context: ExecutionContext) => headerOf(context, 'x-plan') ?? 'free';
const define = {
  free: { ...plan, name: 'free', rate: 5 },
  business: { ...plan, name: 'business', rate: 50 },
};

async function start(limit: ModuleLimit): Promise<LimiterService> {
  const providers = [PlanLimits];
  app = await HttpApp.start(frameworks[0]!, {
    controllers: [OpenController],
    providers,
    limits: { limits: [limit], define },
  });
  return app.nest.get(LimiterService);
}

it.each<[string, ModuleLimit]>([
  ['that a function returns', () => plan],
  ['that a class resolves', PlanLimits],
  ['whose rate is a function', { ...plan, rate: () => 10 }],
])('a limit %s cannot be changed by its name, and the error says what can', async (_, limit) => {
  const limiters = await start(limit);
  await app!.get('/open');
  const calls = [
    () => limiters.setRate('plan', { rate: 1 }),
    () => limiters.setMode('plan', 'off'),
    () => limiters.getRate('plan'),
    () => limiters.listRates('plan'),
    () => limiters.explain({ limit: 'plan', key: 'ip:203.0.113.7' }),
  ];
  for (const call of calls) {
    await expect(call()).rejects.toThrow(RateLimitConfigError);
    await expect(call()).rejects.toThrow("got the name 'plan'");
    await expect(call()).rejects.toThrow(
      "'free', 'business'; a function reaches these if it returns their names instead of limits of its own",
    );
  }
});

const quotaOf = async (name: string) => reported(await app!.get('/open', { 'x-plan': name }))[0]?.[1];

it('a defined limit whose name a function returns can be changed', async () => {
  const limiters = await start(planOf);
  expect([await quotaOf('free'), await quotaOf('business')]).toEqual([5, 50]);
  await limiters.setRate('business', { rate: 25 });
  expect([await quotaOf('free'), await quotaOf('business')]).toEqual([5, 25]);
});
