import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import {
  type CanActivate,
  Body,
  Controller,
  type ExecutionContext,
  Get,
  HttpCode,
  Injectable,
  Post,
  UseGuards,
} from '@nestjs/common';
import {
  InjectLimiter,
  Limiter,
  MemoryStore,
  RateLimit,
  type RateLimitModuleOptions,
  SkipRateLimit,
} from '../../lib/index.js';
import { HttpApp } from '../e2e/http-app.js';
import { ask, compile, ManualClock } from '../support/limits/stores.js';
import { untriedCode } from './rows.js';

const GUIDE = 'docs/guides/plans.md';
const SPEC = 'test/docs/plans.long.spec.ts';
const guide = readFileSync(GUIDE, 'utf8');

interface Subscriber {
  user?: { id: string; subscribedAt: Date };
}

/** The options of the guide. */
const { define } = ((RateLimitModule: { forRoot: (given: RateLimitModuleOptions) => RateLimitModuleOptions }) =>
  RateLimitModule.forRoot({
    redis: 'redis://localhost:6379',
    define: {
      plan: {
        algo: 'calendar-window',
        rate: 1000,
        period: 'month',
        timezone: 'Europe/Berlin',
        key: 'user',
        anchor: (context) => context.switchToHttp().getRequest<Subscriber>().user?.subscribedAt,
        rollover: 0.5,
        credits: true,
      },
    },
  }))({ forRoot: (given) => given });

const ada = { id: 'ada', subscribedAt: new Date('2026-01-31T09:30+01:00') };

/** Stands for an app's own guard of users. */
class UserGuard implements CanActivate {
  canActivate(context: ExecutionContext) {
    const request = context.switchToHttp().getRequest<Subscriber & { headers: Record<string, string> }>();
    if (request.headers['x-user'] === 'ada') request.user = ada;
    return true;
  }
}

/** Stands for an app's own guard of its provider. */
class SignatureGuard implements CanActivate {
  canActivate() {
    return true;
  }
}

@Controller('reports')
class ReportsController {
  @Get()
  @RateLimit('plan')
  list() {}
}

@Injectable()
class Exports {
  constructor(@InjectLimiter('plan') private readonly plan: Limiter) {}

  async run(user: { id: string; subscribedAt: Date }, rows: number) {
    const decision = await this.plan.consume(`user:${user.id}`, { cost: rows, anchor: user.subscribedAt });
    return decision.allowed;
  }
}

interface Payment {
  id: string;
  userId: string;
  units: number;
}

@Controller('webhooks')
@SkipRateLimit()
@UseGuards(SignatureGuard) // your own guard: only the payment provider passes
class PaymentsController {
  constructor(@InjectLimiter('plan') private readonly plan: Limiter) {}

  @Post('paid')
  @HttpCode(200)
  async paid(@Body() payment: Payment) {
    return { credits: await this.plan.credit(`user:${payment.userId}`, payment.units, { id: payment.id }) };
  }

  @Post('refunded')
  @HttpCode(200)
  async refunded(@Body() payment: Payment) {
    const id = `refund of ${payment.id}`;
    return { credits: await this.plan.withdraw(`user:${payment.userId}`, payment.units, { id }) };
  }
}

describe('the guide of plans', () => {
  it('has a table of what moves on that is right', async () => {
    const rows = [
      ...guide.matchAll(/^\| (\w+) +\| ([\d,]+) +\| ([\d,]+) +\| ([\d,]*) +\| ([\d,]*) +\| ([\d,]*|nothing) +\|$/gm),
    ];
    expect(rows.map(([, month]) => month)).toEqual(['January', 'February', 'March', 'April', 'May', 'June']);
    const clock = new ManualClock();
    const store = new MemoryStore({ clock: clock.now });
    const limit = compile({ algo: 'calendar-window', rate: 1000, period: 'month', rollover: 0.5 });
    for (const [month, [, , moved, quota, used]] of rows.entries()) {
      const [movedHere, all, units] = [moved, quota, used].map((text) => Number(text!.replaceAll(',', '')));
      clock.micros = Date.UTC(2026, month, 10) * 1000;
      const before = await ask(store, limit, { peek: true });
      expect([month, before.quota]).toEqual([month, all]);
      expect(movedHere).toBe(all! - 1000);
      if (units! > 0) expect(await ask(store, limit, { cost: units! })).toMatchObject({ allowed: true });
    }
    await store.close();
  });

  it('has a plan whose month begins when its user subscribed, and that can be paid for', async () => {
    const app = await HttpApp.start('express', {
      limits: { define: define! },
      controllers: [ReportsController, PaymentsController],
      providers: [Exports],
      configure: (nest) => nest.useGlobalGuards(new UserGuard()),
    });
    const at = (time: string) => {
      app.clock.micros = Date.parse(time) * 1000;
    };
    const remaining = async (who: string) => {
      const response = await app.get('/reports', { 'x-user': who });
      return [response.status, Number(/r=(\d+)/.exec(response.headers.get('ratelimit')!)![1])];
    };
    const send = async (path: string, payment: Partial<Payment>) => {
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(`${app.url}/webhooks/${path}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(payment),
      });
      return [response.status, ((await response.json()) as { credits?: number }).credits];
    };
    try {
      at('2026-02-28T09:30+01:00');
      expect(await remaining('ada')).toEqual([200, 999]);
      expect(await remaining('a guest')).toEqual([200, 999]);
      at('2026-03-31T09:29+02:00');
      expect(await app.nest.get(Exports).run(ada, 599)).toBe(true);
      at('2026-03-31T09:30+02:00');
      expect(await remaining('ada')).toEqual([200, 1199]);
      const payment = { id: 'payment-1', userId: 'ada', units: 500 };
      expect(await send('paid', payment)).toEqual([200, 500]);
      expect(await send('paid', payment)).toEqual([200, 500]);
      expect(await app.nest.get(Exports).run(ada, 1650)).toBe(true);
      expect(await send('refunded', payment)).toEqual([200, 0]);
      expect(await send('refunded', payment)).toEqual([200, 0]);
      expect(await send('paid', { userId: 'ada', units: 500 })).toEqual([500, undefined]);
    } finally {
      await app.close();
    }
  });

  it.each([GUIDE, 'docs/guides/prepaid-units.md'])('has no other code: %s', (page) =>
    expect(untriedCode(page, SPEC, 'started')).toEqual([]),
  );

  it('has no other code in its reference', () => {
    const [options, ...others] = untriedCode('docs/reference/plans.md', SPEC);
    expect(options).toMatch(/^\{ algo: 'calendar-window', .* \}$/);
    expect(others).toEqual([]);
  });
});
