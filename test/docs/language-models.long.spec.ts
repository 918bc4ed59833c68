import 'reflect-metadata';
import { afterEach, expect, it } from '@jest/globals';
import { Body, Controller, type INestApplication, Module, Post } from '@nestjs/common';
import { NestFactory as Factory } from '@nestjs/core';
import { generateText, wrapLanguageModel } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { limitModel } from '../../lib/integrations/ai/index.js';
import { LimiterService, RateLimitModule } from '../../lib/index.js';
import { untriedCode } from './rows.js';

/** A model that answers at once. */
const gateway = (_: string) =>
  new MockLanguageModelV3({
    doGenerate: {
      content: [{ type: 'text', text: 'Hello' }],
      finishReason: { unified: 'stop', raw: 'stop' },
      usage: {
        inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 20, text: 20, reasoning: 0 },
      },
      warnings: [],
    },
  });

const priceOf = (input: number, output: number) => input + 2 * output;
const countTokens = (prompt: unknown) => JSON.stringify(prompt).length;

@Controller()
class ChatController {
  constructor(private readonly limiters: LimiterService) {}

  @Post('chat')
  async chat(@Body() { org, prompt }: { org: string; prompt: string }) {
    const model = wrapLanguageModel({
      model: gateway('openai/gpt-5'),
      middleware: limitModel(this.limiters, {
        limits: [
          { limit: 'requests', key: org, units: () => 1 },
          { limit: 'tokens', key: org },
        ],
        maxOutputTokens: 2_000,
      }),
    });
    const { text } = await generateText({ model, prompt });
    return { text };
  }
}

@Module({
  imports: [
    RateLimitModule.forRoot({
      define: {
        requests: { algo: 'sliding-window', rate: 60, interval: '1m' },
        tokens: { algo: 'sliding-window', rate: 100_000, interval: '1m', hold: '5m' },
      },
    }),
  ],
  controllers: [ChatController],
})
class AppModule {}

let running: INestApplication;
afterEach(() => running.close());

/** Nest's, on a port that is free. */
const NestFactory = {
  create: async (module: typeof AppModule) => {
    running = await Factory.create(module, { logger: false, abortOnError: false });
    return { listen: async (_port: number) => running.listen(0, '127.0.0.1') };
  },
};

it('begins with an app that runs', async () => {
  const app = await NestFactory.create(AppModule);
  await app.listen(3000);

  const post = async (prompt: string) => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json', connection: 'close' } };
    return fetch(`${await running.getUrl()}/chat`, { ...init, body: JSON.stringify({ org: 'acme', prompt }) });
  };
  expect(await (await post('Hi')).json()).toEqual({ text: 'Hello' });
  const tokens = running.get(LimiterService).for('tokens');
  expect(await tokens.peek('acme')).toMatchObject({ remaining: 99_970 });
  const refused = await post('x'.repeat(98_000));
  expect(refused.status).toBe(429);
  expect(await refused.json()).toMatchObject({ limits: ['tokens'] });
});

it('estimates by functions of the app', async () => {
  const module = RateLimitModule.forRoot({ define: { money: { algo: 'budget', limit: 1_000, period: 'day' } } });
  running = await Factory.create({ module: class {}, imports: [module] }, { logger: false });
  await running.init();
  const limiters = running.get(LimiterService);
  const org = 'acme';
  const money = limitModel(limiters, {
    limits: [
      { limit: 'money', key: org, units: ({ inputTokens, outputTokens }) => priceOf(inputTokens, outputTokens) },
    ],
    estimate: ({ prompt, maxOutputTokens = 500 }) => ({
      inputTokens: countTokens(prompt),
      outputTokens: maxOutputTokens,
    }),
  });
  const model = wrapLanguageModel({ model: gateway(''), middleware: money });
  await generateText({ model, prompt: 'Hi', maxOutputTokens: 50 });
  expect(await limiters.for('money').peek(org)).toMatchObject({ remaining: 950 });
  await expect(generateText({ model, prompt: 'Hi' })).rejects.toThrow('Too many requests');
});

it('has no other code', () => {
  expect(untriedCode('docs/guides/language-models.md', 'test/docs/language-models.long.spec.ts')).toEqual([]);
});
