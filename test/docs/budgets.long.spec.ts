import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, Injectable, Module, Post, StreamableFile } from '@nestjs/common';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  LimiterService,
  RateLimitExceededException,
  RateLimitModule,
  type RateLimitModuleOptions,
  type ReservedCheck,
  usd,
} from '../../lib/index.js';
import { createTestingStore, TestClock } from '../../lib/testing/index.js';
import { until } from '../support/time/until.js';
import { untriedCode } from './rows.js';

const PAGE = new URL('../../docs/algorithms/budget.md', `file://${process.cwd()}/test/docs/`);

/** The example's rows: time, what is done, and what the page says of it. */
const rows = readFileSync(PAGE, 'utf8')
  .split('\n')
  .filter((line) => /^\| (30 September|1 October)/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()));

const clock = new TestClock();
const store = createTestingStore({ clock });
/** The options of the guide. */
const { define } = ((RateLimitModule: { forRoot: (given: RateLimitModuleOptions) => RateLimitModuleOptions }) =>
  RateLimitModule.forRoot({
    redis: 'redis://localhost:6379',
    define: {
      requests: { algo: 'sliding-window', rate: 60, interval: '1m' },
      tokens: { algo: 'sliding-window', rate: 100_000, interval: '1m', hold: '5m' },
      money: {
        algo: 'budget',
        limit: usd(50),
        period: 'month',
        timezone: 'Europe/Berlin',
        hold: '5m',
        onLapse: 'charge',
      },
    },
  }))({ forRoot: (given) => given });
const example = { algo: 'budget', limit: 10, period: 'month', hold: '5m', onLapse: 'release' } as const;

const PRICE = usd('0.15'); // per million tokens
const priceOf = (tokens: number) => Math.ceil((tokens * PRICE) / 1_000_000);

const estimateOf = (prompt: string) => prompt.length + 94;

/** After so many of its ten tokens the model says nothing more, and goes on until its client has gone. */
let said = Infinity;

/** Stands for a language model. */
const model = {
  async *stream(
    _prompt: string,
    { signal }: { signal: AbortSignal },
  ): AsyncGenerator<{ text: string; tokens: number }> {
    for (let tokens = 0; tokens < 10 && !signal.aborted;) {
      if (tokens < said) tokens++;
      yield Promise.resolve({ text: tokens < said ? 'token ' : ' ', tokens });
    }
  },
};

@Injectable()
class Assistant {
  constructor(private readonly limiters: LimiterService) {}

  async answer(org: string, prompt: string, signal: AbortSignal): Promise<AsyncGenerator<string>> {
    const most = estimateOf(prompt); // prompt tokens, plus the maximum for the answer
    const call = await this.limiters.reserve([
      { limit: 'requests', key: org },
      { limit: 'tokens', key: org, cost: most },
      { limit: 'money', key: org, cost: priceOf(most) },
    ]);
    if (!call.allowed) throw new RateLimitExceededException(call);
    return this.words(call, prompt, signal);
  }

  private async *words(call: ReservedCheck, prompt: string, signal: AbortSignal): AsyncGenerator<string> {
    let used = 0;
    try {
      for await (const { text, tokens } of model.stream(prompt, { signal })) {
        used = tokens;
        yield text;
      }
    } finally {
      await call.settle([1, used, priceOf(used)]);
    }
  }
}

@Controller()
class Answers {
  constructor(private readonly assistant: Assistant) {}

  @Post('answers')
  async complete(): Promise<StreamableFile> {
    const answer = await this.assistant.answer('org:1', 'prompt', new AbortController().signal);
    return new StreamableFile(Readable.from(answer));
  }
}

@Module({
  imports: [RateLimitModule.forRoot({ store, define: { ...define, example } })],
  controllers: [Answers],
  providers: [Assistant],
})
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
      const [, who, does, units] = /^(\w)(?:'s hold expires| (reserves|settles at) (\d+))/.exec(what!) ?? [];
      if (does === 'reserves') {
        const answer = await limiter.reserve('a', { cost: Number(units) });
        if (answer.id !== undefined) ids.set(who!, answer.id);
        const told = [answer.allowed ? 'allowed' : 'rejected', answer.retryAfterMs.toLocaleString('en')];
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
    const spent = async () => usd(50) - (await left('money'));
    await until(async () => (await spent()) === priceOf(10));
    expect([await left('requests'), await left('tokens')]).toEqual([59, 99_990]);
    said = 4;
    const client = new AbortController();
    const cut = await fetch(url, { method: 'POST', signal: client.signal });
    await cut.body!.getReader().read();
    expect(await spent()).toBe(priceOf(10) + priceOf(100));
    client.abort();
    await until(async () => (await spent()) === priceOf(10) + priceOf(4));
    expect([await left('requests'), await left('tokens')]).toEqual([58, 99_986]);
  });

  it('answer a call that does not fit with 429 and the wait', async () => {
    const taken = await limiters.for('requests').consume('org:1', await left('requests'));
    expect(taken.allowed).toBe(true);
    const before = await left('money');
    const refused = await fetch(`${await app.getUrl()}/answers`, { method: 'POST' });
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await refused.json()).toMatchObject({ limits: ['requests'] });
    expect(await left('money')).toBe(before);
  });

  it('are settled elsewhere', async () => {
    const [org, usage] = ['org:2', 1_000_000];
    const queue: { data: { org: string; reservation: string | undefined } }[] = [];
    const jobs = {
      add: async (_name: string, data: { org: string; reservation: string | undefined }) =>
        Promise.resolve(queue.push({ data })),
    };
    const { allowed, id } = await limiters.for('money').reserve(org, { cost: usd('0.40') });
    if (allowed) await jobs.add('complete', { org, reservation: id });

    await work(queue[0]!);
    expect((await limiters.for('money').peek(org)).remaining).toBe(usd('49.85'));

    async function work(job: { data: { org: string; reservation: string | undefined } }) {
      // in the worker
      const { org, reservation } = job.data;
      if (reservation !== undefined) await limiters.for('money').settle(org, reservation, priceOf(usage));
    }
  });

  it('have no other code in their guide', () =>
    expect(
      ['docs/guides/budgets.md', 'docs/reference/budgets.md'].flatMap((page) =>
        untriedCode(page, 'test/docs/budgets.long.spec.ts', 'started'),
      ),
    ).toEqual([]));
});
