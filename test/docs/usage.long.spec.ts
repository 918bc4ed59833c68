import { createWriteStream, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  InjectLimiter,
  Limiter,
  LimiterService,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../lib/index.js';
import { createTestingStore, TestClock } from '../../lib/testing/index.js';
import { untriedCode } from './rows.js';

const GUIDE = 'docs/guides/usage.md';
const REFERENCE = 'docs/reference/usage.md';

/** The example's rows: time, what happens, and the units of the two days. */
const rows = readFileSync(GUIDE, 'utf8')
  .split('\n')
  .filter((line) => /^\| (30 November|1 December)/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()));

/** The options of the guide. */
const { define } = ((RateLimitModule: { forRoot: (given: RateLimitModuleOptions) => RateLimitModuleOptions }) =>
  RateLimitModule.forRoot({
    redis: 'redis://localhost:6379',
    define: {
      tokens: {
        algo: 'sliding-window',
        rate: 100_000,
        interval: '1m',
        hold: '15m',
        usage: { keep: '400d', timezone: 'Europe/Berlin' },
      },
    },
  }))({ forRoot: (given) => given });

@Injectable()
class Invoices {
  constructor(@InjectLimiter('tokens') private readonly tokens: Limiter) {}

  async linesOf(org: string, from: string, to: string) {
    const { total, days } = await this.tokens.usage(org, { from, to });
    return [...days.map(({ day, units }) => `${day}: ${units} tokens`), `together: ${total} tokens`];
  }
}

async function* csvOf(tokens: Limiter, from: string, to: string) {
  yield 'key,day,units\n';
  for await (const { key, day, units } of tokens.exportUsage({ from, to })) yield `${key},${day},${units}\n`;
}

@Injectable()
class UsageExport {
  constructor(@InjectLimiter('tokens') private readonly tokens: Limiter) {}

  async write(file: string, from: string, to: string) {
    await pipeline(csvOf(this.tokens, from, to), createWriteStream(file));
  }
}

describe('the guide to usage', () => {
  const clock = new TestClock();
  const store = createTestingStore({ clock });
  const folder = mkdtempSync(join(tmpdir(), 'sluice-usage-'));
  let app: TestingModule;
  let limiters: LimiterService;

  beforeAll(async () => {
    app = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ store, define: define! })],
      providers: [Invoices, UsageExport],
    }).compile();
    await app.init();
    limiters = app.get(LimiterService);
  });
  afterAll(async () => {
    await app.close();
    await store.close();
    rmSync(folder, { recursive: true });
  });

  it('has an example that does as it says, row by row', async () => {
    const tokens = limiters.for('tokens');
    let id: string | undefined;
    const seen = [];
    for (const [, time, what, november, december] of rows) {
      const [day, month, at] = time!.replace(',', '').split(' ') as [string, string, string];
      clock.set(`2026-${month === 'November' ? '11' : '12'}-${day.padStart(2, '0')}T${at}:00+01:00`);
      const units = Number(/\d+/.exec(what!)![0]);
      if (what!.includes('reserves')) ({ id } = await tokens.reserve('org:1', { cost: units }));
      else if (what!.includes('settles')) await tokens.settle('org:1', id!, units);
      else if (what!.includes('refunded')) await tokens.refund('org:1', units);
      else expect((await tokens.consume('org:1', units)).allowed).toBe(!what!.includes('rejected'));
      const { days } = await tokens.usage('org:1');
      const of = (name: string) => days.find((each) => each.day === name)?.units ?? 0;
      expect([what, of('2026-11-30'), of('2026-12-01')]).toEqual([what, Number(november), Number(december)]);
      seen.push(what);
    }
    expect(seen).toHaveLength(5);
  });

  it('has an invoice and an export of the month that tell the same', async () => {
    await expect(app.get(Invoices).linesOf('org:1', '2026-11-01', '2026-12-01')).resolves.toEqual([
      '2026-11-30: 640 tokens',
      'together: 640 tokens',
    ]);
    const file = join(folder, 'november.csv');
    await app.get(UsageExport).write(file, '2026-11-01', '2026-12-01');
    expect(readFileSync(file, 'utf8')).toBe('key,day,units\norg:1,2026-11-30,640\n');
    expect(readFileSync(GUIDE, 'utf8')).toContain('    key,day,units\n    org:1,2026-11-30,640\n');
  });

  it('says how many of its limits one check takes', async () => {
    const checks = Array.from({ length: 132 }, (_, at) => ({ limit: 'tokens', key: `many:${at}` }));
    expect(readFileSync(REFERENCE, 'utf8')).toContain('131 like `tokens` above');
    expect((await limiters.check(checks.slice(0, 131))).allowed).toBe(true);
    await expect(limiters.check(checks)).rejects.toThrow('Split the list');
  });

  it('has no other code', () => expect(untriedCode(GUIDE, 'test/docs/usage.long.spec.ts', 'started')).toEqual([]));
});
