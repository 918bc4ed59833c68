import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, Module, Post, StreamableFile } from '@nestjs/common';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { RateLimitExceededException } from '../../lib/http/rate-limit-exceeded.exception.js';
import type { ReservedCheck } from '../../lib/limiter/reserved-check.js';
import { usd } from '../../lib/limits/money.js';
import { LimiterService } from '../../lib/nest/limiter.service.js';
import { RateLimitModule } from '../../lib/nest/rate-limit.module.js';
import { createTestingStore, TestClock } from '../../lib/testing/index.js';
import { until } from '../support/until.js';

const PAGE = new URL('../../docs/algorithms/budget.md', `file://${process.cwd()}/test/docs/`);

/** The example's rows: time, what is done, and what the page says of it. */
const rows = readFileSync(PAGE, 'utf8')
  .split('\n')
  .filter((line) => /^\| (30 September|1 October)/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()));

const clock = new TestClock();
const store = createTestingStore({ clock });
const define = {
  requests: { algo: 'sliding-window', rate: 60, interval: '1m' },
  tokens: { algo: 'sliding-window', rate: 1000, interval: '1m', hold: '5m' },
  money: { algo: 'budget', limit: usd(1), period: 'month', timezone: 'Europe/Berlin', hold: '5m', onLapse: 'charge' },
  example: { algo: 'budget', limit: 10, period: 'month', hold: '5m', onLapse: 'release' },
} as const;

const MOST = 100;
const PRICE = usd(5000);
const priceOf = (tokens: number) => Math.ceil((tokens * PRICE) / 1_000_000);

/** After so many of its ten tokens the model says nothing more, and goes on until its client has gone. */
let said = Infinity;

/** Stands for a language model. */
async function* model(): AsyncGenerator<string> {
  for (let tokens = 0; tokens < 10; tokens += tokens < said ? 1 : 0)
    yield Promise.resolve(tokens < said ? 'token ' : '');
}

@Controller()
class Assistant {
  constructor(private readonly limiters: LimiterService) {}

  @Post('answers')
  async complete(): Promise<StreamableFile> {
    const call = await this.limiters.reserve([
      { limit: 'requests', key: 'org:1' },
      { limit: 'tokens', key: 'org:1', cost: MOST },
      { limit: 'money', key: 'org:1', cost: priceOf(MOST) },
    ]);
    if (!call.allowed) throw new RateLimitExceededException(call);
    return new StreamableFile(Readable.from(this.stream(call)));
  }

  private async *stream(call: ReservedCheck): AsyncGenerator<string> {
    let used = 0;
    try {
      for await (const token of model()) {
        if (token !== '') used++;
        yield token === '' ? ' ' : token;
      }
    } finally {
      await call.settle([1, used, priceOf(used)]);
    }
  }
}

@Module({ imports: [RateLimitModule.forRoot({ store, define })], controllers: [Assistant] })
class App {}

describe('budgets', () => {
  let app: INestApplication;
  let limiters: LimiterService;

  beforeAll(async () => {
    app = (await Test.createTestingModule({ imports: [App] }).compile()).createNestApplication();
    await app.listen(0, '127.0.0.1');
    limiters = app.get(LimiterService);
  });
  afterAll(async () => {
    await app.close();
    await store.close();
  });

  const left = async (name: string) => (await limiters.for(name).peek('org:1')).remaining;

  it('do as the example of their page says, row by row', async () => {
    const limiter = limiters.for('example');
    const ids = new Map<string, string>();
    const seen = [];
    for (const [, time, what, decision, spent, held, remaining, retryAfterMs] of rows) {
      const [day, month, at] = time!.replace(',', '').split(' ') as [string, string, string];
      clock.set(`2026-${month === 'October' ? '10' : '09'}-${day.padStart(2, '0')}T${at}:00Z`);
      const [, who, does, units] = /^(\w)(?:'s hold lapses| (reserves|settles at) (\d+))/.exec(what!) ?? [];
      if (does === 'reserves') {
        const answer = await limiter.reserve('a', { cost: Number(units) });
        if (answer.id !== undefined) ids.set(who!, answer.id);
        const told = [answer.allowed ? 'allowed' : 'refused', answer.retryAfterMs.toLocaleString('en')];
        expect([what, ...told]).toEqual([what, decision, retryAfterMs]);
        seen.push(who);
      } else if (does === 'settles at') {
        await limiter.settle('a', ids.get(who!)!, Number(units));
      }
      expect([what, (await limiter.peek('a')).remaining]).toEqual([what, Number(remaining)]);
      expect([what, Math.max(0, 10 - Number(spent) - Number(held))]).toEqual([what, Number(remaining)]);
    }
    expect(seen).toEqual(['A', 'B', 'C', 'D']);
  });

  it('charge a streamed call what it took, also when its client has gone', async () => {
    const url = `${await app.getUrl()}/answers`;
    said = Infinity;
    const whole = await fetch(url, { method: 'POST' });
    await expect(whole.text()).resolves.toHaveLength(60);
    await until(async () => (await left('money')) === usd('0.95'));
    expect([await left('requests'), await left('tokens')]).toEqual([59, 990]);
    said = 4;
    const client = new AbortController();
    const cut = await fetch(url, { method: 'POST', signal: client.signal });
    await cut.body!.getReader().read();
    expect(await left('money')).toBe(usd('0.45'));
    client.abort();
    await until(async () => (await left('money')) === usd('0.93'));
    expect([await left('requests'), await left('tokens')]).toEqual([58, 986]);
  });
});
