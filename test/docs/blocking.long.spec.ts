import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, type ExecutionContext, Get } from '@nestjs/common';
import { type CheckResult, RateLimit, RateLimitDecision, RateLimitModule } from '../../lib/index.js';
import { untriedCode } from './rows.js';
import { TriedApp } from './tried-app.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The guide's limit. */
const guide = () =>
  RateLimitModule.forRoot({
    define: {
      login: { algo: 'sliding-log', rate: 5, interval: '15m', blockFor: ['1m', '10m', '1h', '1d'], forgetAfter: '1d' },
    },
  });

@Controller()
class LoginController {
  @Get()
  @RateLimit('login')
  login(@RateLimitDecision() { tightest }: CheckResult) {
    return { offences: tightest.offences };
  }

  @Get('single')
  @RateLimit({ algo: 'fixed-window', rate: 5, interval: '15m', blockFor: '1h' })
  single() {
    return 'ok';
  }

  @Get('struck')
  @RateLimit({ algo: 'fixed-window', rate: 5, interval: '15m', blockFor: '1h', strike: true })
  struck() {
    return 'ok';
  }

  @Get('told')
  @RateLimit({
    algo: 'gcra',
    rate: 1,
    interval: '1s',
    blockFor: ['1m', '1h'],
    message: (_: ExecutionContext, { tightest }: CheckResult) => `offence ${tightest.offences}`,
  })
  told() {
    return 'ok';
  }
}

let app: TriedApp;
afterEach(() => app.close());

const start = async () => (app = await TriedApp.start({ imports: [guide()], controllers: [LoginController] }));

/** Five requests that pass, and one that is refused for so long. */
async function offend(path: string, seconds: number): Promise<void> {
  expect(await app.statuses(5, path)).toEqual([200, 200, 200, 200, 200]);
  const refused = await app.get(path);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, String(seconds)]);
}

describe('the guide of blocking', () => {
  it('blocks as its first table says', async () => {
    await start();
    expect(await app.statuses(5, '/single')).toEqual([200, 200, 200, 200, 200]);
    app.clock.advance(MINUTE);
    expect((await app.get('/single')).headers.get('retry-after')).toBe('3600');
    app.clock.advance(29 * MINUTE);
    expect((await app.get('/single')).headers.get('retry-after')).toBe('1860');
    app.clock.advance(31 * MINUTE);
    expect((await app.get('/single')).status).toBe(200);
  });

  it('blocks longer with each offence, as its second table says', async () => {
    await start();
    await offend('/', 60);
    app.clock.advance(30 * SECOND);
    expect((await app.get()).headers.get('retry-after')).toBe('30');
    app.clock.advance(30 * SECOND);
    await offend('/', 600);
    app.clock.advance(10 * MINUTE);
    await offend('/', 3600);
    app.clock.advance(HOUR);
    await offend('/', 86_400);
    app.clock.advance(2 * DAY);
    await offend('/', 60);
  });

  it('is prolonged as the table of strikes says', async () => {
    await start();
    expect(await app.statuses(5, '/struck')).toEqual([200, 200, 200, 200, 200]);
    for (const ms of [MINUTE, 29 * MINUTE, 59 * MINUTE]) {
      app.clock.advance(ms);
      const refused = await app.get('/struck');
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3600']);
    }
    app.clock.advance(HOUR);
    const allowed = await app.get('/struck');
    expect([allowed.status, allowed.headers.get('ratelimit')]).toEqual([200, expect.stringContaining('r=4')]);
  });

  it('tells code how many offences there were', async () => {
    await start();
    const { limiters } = app;
    const login = limiters.for('login');
    for (const ms of [MINUTE, 10 * MINUTE]) {
      await login.consume('ip:203.0.113.7', 6);
      app.clock.advance(ms);
    }
    const { offences } = await limiters.for('login').peek('ip:203.0.113.7'); // 2, whether it is blocked now or not
    expect(offences).toBe(2);
    await login.consume('ip:203.0.113.7', 6);
    expect(await login.peek('ip:203.0.113.7')).toMatchObject({ allowed: false, offences: 3, retryAfterMs: HOUR });
    await login.block('ip:203.0.113.7', '1ms');
    app.clock.advance(1);
    expect(await login.peek('ip:203.0.113.7')).toMatchObject({ allowed: true, offences: 3 });
    await login.unblock('ip:203.0.113.7');
    expect(await login.peek('ip:203.0.113.7')).toMatchObject({ allowed: true, offences: 0 });
  });

  it('tells routes and messages', async () => {
    await start();
    for (let request = 0; request < 6; request++) await app.get();
    app.clock.advance(MINUTE);
    expect(await (await app.get()).json()).toEqual({ offences: 1 });
    await app.get('/told');
    expect(await (await app.get('/told')).json()).toMatchObject({ message: 'offence 1' });
    app.clock.advance(MINUTE);
    await app.get('/told');
    expect(await (await app.get('/told')).json()).toMatchObject({ message: 'offence 2' });
  });

  it('has no other code', async () => {
    await start();
    expect(untriedCode('docs/guides/blocking.md', 'test/docs/blocking.long.spec.ts', 'started')).toEqual([]);
  });
});
