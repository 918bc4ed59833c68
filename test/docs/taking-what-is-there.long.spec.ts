import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { InjectLimiter, type Limiter, LimiterService, RateLimitModule } from '../../lib/index.js';
import { createTestingStore, RateLimitTesting, TestClock } from '../../lib/testing/index.js';
import { untriedCode } from './rows.js';

const GUIDE = 'docs/guides/taking-what-is-there.md';

@Injectable()
class Mailer {
  readonly sent: string[] = [];

  constructor(@InjectLimiter('mails') private readonly mails: Limiter) {}

  /** Sends as many as the limit lets out now. Returns those that are left, and when to try again. */
  async send(tenant: string, queue: string[]) {
    if (queue.length === 0) return { left: queue, retryAfterMs: 0 };
    const { taken = 0, retryAfterMs } = await this.mails.consume(tenant, { upTo: queue.length });
    this.sent.push(...queue.slice(0, taken));
    return { left: queue.slice(taken), retryAfterMs };
  }
}

@Module({
  imports: [
    RateLimitModule.forRoot({
      redis: 'redis://localhost:6379',
      define: {
        mails: { algo: 'token-bucket', rate: 100, interval: '1m', burst: 300 },
        'all-mails': { algo: 'fixed-window', rate: 120, interval: '1h' },
      },
    }),
  ],
  providers: [Mailer],
})
class MailModule {}

/** The rows of the table: time, upTo, taken, decision. */
const rows = readFileSync(GUIDE, 'utf8')
  .split('\n')
  .filter((line) => /^\| \d\d:\d\d /.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()));

const clock = new TestClock();
let app: TestingModule;
beforeAll(async () => {
  const builder = Test.createTestingModule({ imports: [MailModule] });
  app = await RateLimitTesting.useStore(builder, createTestingStore({ clock })).compile();
  await app.init();
});
afterAll(() => app.close());

it('its check takes the same number of both limits', async () => {
  const limiters = app.get(LimiterService);
  const tenant = 't2';
  const { taken, tightest } = await limiters.check([
    { limit: 'mails', key: tenant, upTo: 200 },
    { limit: 'all-mails', key: 'everyone', upTo: 200 },
  ]);
  expect({ taken, tightest }).toMatchObject({ taken: 120, tightest: { limit: 'all-mails', remaining: 0 } });
});

it('has no other code', () => expect(untriedCode(GUIDE, 'test/docs/taking-what-is-there.long.spec.ts')).toEqual([]));

it('the example takes what its table says', async () => {
  const mailer = app.get(Mailer);
  const start = clock.now() / 1000;
  expect(rows).toHaveLength(4);
  for (const [, time, upTo, taken, decision] of rows) {
    const [minutes, seconds] = time!.split(':').map(Number) as [number, number];
    clock.set(start + (minutes * 60 + seconds) * 1000);
    const before = mailer.sent.length;
    const { left, retryAfterMs } = await mailer.send(
      't1',
      Array.from({ length: Number(upTo) }, () => 'mail'),
    );
    expect(String(mailer.sent.length - before)).toBe(taken);
    expect(left).toHaveLength(Number(upTo) - Number(taken));
    const { remaining } = await app.get(LimiterService).for('mails').peek('t1');
    if (decision!.startsWith('rejected')) expect(decision).toBe(`rejected, \`retryAfterMs\` ${retryAfterMs}`);
    else expect(decision).toBe(`allowed, ${remaining} remaining`);
  }
});
