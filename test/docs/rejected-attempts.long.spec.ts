import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { InjectLimiter, type Limiter, LimiterService, RateLimitModule } from '../../lib/index.js';
import { createTestingStore, RateLimitTesting, TestClock } from '../../lib/testing/index.js';
import { untriedCode } from './rows.js';

const GUIDE = 'docs/reference/rejected-attempts.md';

@Injectable()
class Codes {
  readonly alarms: string[] = [];

  constructor(@InjectLimiter('codes') private readonly codes: Limiter) {}

  async mayTry(phone: string): Promise<boolean> {
    const { allowed, tried = 0, quota } = await this.codes.consume(phone);
    if (tried === quota + 2) this.alarms.push(`${phone}: ${tried} tries of ${quota} allowed`);
    return allowed;
  }
}

@Module({
  imports: [
    RateLimitModule.forRoot({
      redis: 'redis://localhost:6379',
      define: { codes: { algo: 'fixed-window', rate: 3, interval: '1h', countRefused: true } },
    }),
  ],
  providers: [Codes],
})
class CodesModule {}

/** The rows of the table: attempt, decision, tried. */
const rows = readFileSync(GUIDE, 'utf8')
  .split('\n')
  .filter((line) => /^\| \d /.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()));

let app: TestingModule;
beforeAll(async () => {
  const builder = Test.createTestingModule({ imports: [CodesModule] });
  app = await RateLimitTesting.useStore(builder, createTestingStore({ clock: new TestClock() })).compile();
  await app.init();
});
afterAll(() => app.close());

it('has no other code', () => expect(untriedCode(GUIDE, 'test/docs/rejected-attempts.long.spec.ts')).toEqual([]));

it('the example counts what its table says', async () => {
  const codes = app.get(Codes);
  expect(rows).toHaveLength(5);
  for (const [, , decision, tried] of rows) {
    const allowed = await codes.mayTry('+491');
    const looked = await app.get(LimiterService).for('codes').peek('+491');
    expect(`${allowed ? 'allowed' : 'rejected'}, ${looked.remaining} remaining`).toBe(decision);
    expect(String(looked.tried)).toBe(tried);
  }
  expect(codes.alarms).toEqual(['+491: 5 tries of 3 allowed']);
});
