import 'reflect-metadata';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type INestApplicationContext, Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import * as ai6 from 'ai';
import * as ai5 from 'ai-5';
import { MockLanguageModelV2 } from 'ai-5/test';
import * as ai7 from 'ai-7';
import { MockLanguageModelV4 } from 'ai-7/test';
import { MockLanguageModelV3 } from 'ai/test';
import type { Redis } from 'ioredis';
import { limitModel, type LimitModelOptions } from '../../../lib/integrations/ai/index.js';
import {
  LimiterService,
  RateLimitConfigError,
  RateLimitExceededException,
  RateLimitModule,
  usd,
} from '../../../lib/index.js';
import { connectRedis, freshPrefix } from '../../support/limits/stores.js';
import { PATIENCE } from '../../support/redis/patience.mjs';
import { until } from '../../support/time/until.js';

/** What a call of a stubbed model does. */
interface Script {
  /** The parts of the text. */
  texts?: readonly string[];
  /** What it reports to have used; nothing if it ends without. */
  usage?: { input?: number; output?: number; total?: number };
  /** Fails before it answers. */
  fails?: Error;
  /** Fails in the stream, after all texts. */
  breaks?: Error;
  /** The inputs of tool calls after all texts, each as deltas first or only as a whole. */
  toolInputs?: ('deltas' | 'whole')[];
  /** Called when a stream begins. */
  begins?: () => void;
  /** Waited for before each text. */
  pause?: () => Promise<void>;
}

/** The part of each version of the SDK that the tests use. */
interface Sdk {
  wrapLanguageModel(options: object): unknown;
  generateText(options: object): PromiseLike<{ text: string }>;
  streamText(options: object): {
    textStream: AsyncIterable<string>;
    consumeStream(options?: object): PromiseLike<void>;
  };
}
type Mock = new (options: object) => { doGenerateCalls: unknown[]; doStreamCalls: { maxOutputTokens?: number }[] };
const versions: [string, Sdk, Mock][] = [
  ['5', ai5, MockLanguageModelV2],
  ['6', ai6, MockLanguageModelV3],
  ['7', ai7, MockLanguageModelV4],
];

// The middleware is one of each version, by their own types.
const byTypes = (limiters: LimiterService, options: LimitModelOptions) => [
  ai5.wrapLanguageModel({ model: new MockLanguageModelV2(), middleware: limitModel(limiters, options) }),
  ai6.wrapLanguageModel({ model: new MockLanguageModelV3(), middleware: limitModel(limiters, options) }),
  ai7.wrapLanguageModel({ model: new MockLanguageModelV4(), middleware: limitModel(limiters, options) }),
];

const QUOTA = 100_000;
const costly = () => ({ inputTokens: 1000, outputTokens: 1000 });
const estimate = () => ({ inputTokens: 100, outputTokens: 900 });

let redis: Redis;
let app: INestApplicationContext;
let limiters: LimiterService;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());
beforeEach(async () => {
  const imports = [
    RateLimitModule.forRoot({
      redis,
      prefix: freshPrefix(),
      timeout: PATIENCE,
      define: {
        tokens: { algo: 'sliding-window', rate: QUOTA, interval: '1h', hold: '5m' },
        money: { algo: 'budget', limit: usd(1), period: 'month', hold: '5m', onLapse: 'charge' },
        requests: { algo: 'sliding-window', rate: 60, interval: '1h' },
        plain: { algo: 'sliding-window', rate: 60, interval: '1h' },
      },
    }),
  ];
  app = await NestFactory.createApplicationContext({ module: class {}, imports }, { logger: false });
  limiters = app.get(LimiterService);
});
afterEach(() => app.close());

const used = async (limit = 'tokens', key = 'org:1') => {
  const { quota, remaining } = await limiters.for(limit).peek(key);
  return quota - remaining;
};

describe.each(versions)('calls of a model through AI SDK %s', (version, sdk, Mock) => {
  const usageOf = ({ input, output, total }: NonNullable<Script['usage']>) =>
    version === '5'
      ? { inputTokens: input, outputTokens: output, totalTokens: total }
      : { inputTokens: { total: input }, outputTokens: { total: output } };
  const finishReason = version === '5' ? 'stop' : { unified: 'stop', raw: 'stop' };

  function modelOf(script: Script) {
    const { texts = ['Hello'], toolInputs = [], usage, fails, breaks, begins, pause } = script;
    return new Mock({
      doGenerate: async ({ abortSignal }: { abortSignal?: AbortSignal }) => {
        await pause?.();
        abortSignal?.throwIfAborted();
        if (fails !== undefined) throw fails;
        const content = [{ type: 'text', text: texts.join('') }];
        return Promise.resolve({ content, finishReason, usage: usageOf(usage ?? {}), warnings: [] });
      },
      doStream: async ({ abortSignal }: { abortSignal?: AbortSignal }) => {
        if (fails !== undefined) throw fails;
        // The stream of a real model fails with its request.
        const aborted = new Promise<never>((_, reject) => {
          abortSignal?.addEventListener('abort', () => reject(abortSignal.reason as Error));
        });
        aborted.catch(() => undefined);
        async function* parts() {
          yield { type: 'stream-start', warnings: [] };
          yield { type: 'text-start', id: '1' };
          for (const delta of texts) {
            await Promise.race([pause?.(), aborted]);
            yield { type: 'text-delta', id: '1', delta };
          }
          for (const [index, form] of toolInputs.entries()) {
            const [toolCallId, toolName] = [`call-${index}`, 'weather'];
            if (form === 'deltas') {
              yield { type: 'tool-input-start', id: toolCallId, toolName };
              for (const delta of ['{"city":', '"Bonn"}']) yield { type: 'tool-input-delta', id: toolCallId, delta };
              yield { type: 'tool-input-end', id: toolCallId };
            }
            yield { type: 'tool-call', toolCallId, toolName, input: '{"city":"Bonn"}' };
          }
          if (breaks !== undefined) throw breaks;
          yield { type: 'text-end', id: '1' };
          if (usage !== undefined) yield { type: 'finish', finishReason, usage: usageOf(usage) };
        }
        begins?.();
        return Promise.resolve({ stream: ReadableStream.from(parts()) });
      },
    });
  }

  function limited(script: Script, options: Partial<LimitModelOptions> = {}) {
    const model = modelOf(script);
    const limits = [{ limit: 'tokens', key: 'org:1' }];
    const wrapped = sdk.wrapLanguageModel({
      model,
      middleware: limitModel(limiters, { limits, estimate, ...options }),
    });
    return { model, call: { model: wrapped, prompt: 'Hi', maxRetries: 0 } };
  }

  it('cost what the model reports', async () => {
    const { call } = limited({ usage: { input: 7, output: 30, total: 37 } });
    expect((await sdk.generateText(call)).text).toBe('Hello');
    expect(await used()).toBe(37);
    for await (const _ of sdk.streamText(call).textStream) expect(await used()).toBe(37 + 1000);
    expect(await used()).toBe(74);
  });

  it('cost what was reserved where the model reports nothing', async () => {
    await sdk.generateText(limited({ usage: {} }).call);
    expect(await used()).toBe(1000);
    await sdk.generateText(limited({ usage: { output: 5 } }).call);
    expect(await used()).toBe(1105);
  });

  it('cost units of several limits, all or none', async () => {
    const limits = [
      { limit: 'requests', key: 'org:1', units: () => 1 },
      { limit: 'tokens', key: 'org:1' },
      {
        limit: 'money',
        key: 'org:1',
        units: ({ inputTokens, outputTokens }: { inputTokens: number; outputTokens: number }) =>
          inputTokens + outputTokens * 1000,
      },
    ];
    const { call, model } = limited({ usage: { input: 10, output: 20 } }, { limits });
    await sdk.generateText(call);
    expect([await used('requests'), await used('tokens'), await used('money')]).toEqual([1, 30, 20_010]);
    await limiters.for('money').consume('org:1', 900_000);
    await expect(sdk.generateText(call)).rejects.toThrow(RateLimitExceededException);
    expect(model.doGenerateCalls).toHaveLength(1);
    expect([await used('requests'), await used('tokens'), await used('money')]).toEqual([1, 30, 920_010]);
  });

  it('give back what failed before an answer', async () => {
    await expect(sdk.generateText(limited({ fails: new Error('overloaded') }).call)).rejects.toThrow('overloaded');
    const errors: unknown[] = [];
    const onError = ({ error }: { error: unknown }) => errors.push((error as Error).message);
    await sdk.streamText({ ...limited({ fails: new Error('overloaded') }).call, onError }).consumeStream();
    expect(errors).toEqual(['overloaded']);
    expect(await used()).toBe(0);
  });

  it('cost their estimate if they are aborted before an answer', async () => {
    const leaving = new AbortController();
    const pause = async () => Promise.resolve(leaving.abort());
    const { call } = limited({ pause, usage: { input: 1, output: 1 } });
    await expect(sdk.generateText({ ...call, abortSignal: leaving.signal })).rejects.toThrow('abort');
    expect(await used()).toBe(1000);
    await expect(sdk.generateText({ ...call, abortSignal: leaving.signal })).rejects.toThrow('abort');
    expect(await used()).toBe(1000);
  });

  it('cost the input and what was sent, if their stream breaks or ends without usage', async () => {
    const breaking = limited({ texts: ['four', 'six666'], breaks: new Error('gone') });
    await sdk.streamText({ ...breaking.call, onError: () => undefined }).consumeStream({ onError: () => undefined });
    await until(async () => (await used()) === 110);
    await sdk
      .streamText({ ...limited({ texts: ['four'] }).call, onError: () => undefined })
      .consumeStream({ onError: () => undefined });
    await until(async () => (await used()) === 214);
  });

  it.each<[string, NonNullable<Script['toolInputs']>, number]>([
    ['as deltas', ['deltas'], 119],
    ['as a whole', ['whole'], 119],
    ['in both ways', ['deltas', 'whole', 'deltas'], 149],
  ])('cost the input of tools that was sent %s, once, if their stream breaks', async (_, toolInputs, units) => {
    const { call } = limited({ texts: ['four'], toolInputs, breaks: new Error('gone') });
    await sdk.streamText({ ...call, onError: () => undefined }).consumeStream({ onError: () => undefined });
    await until(async () => (await used()) === units);
  });

  it.each(['aborted', 'left'])('cost the input and what was sent, if their stream is %s', async (how) => {
    const leaving = new AbortController();
    const never = new Promise<void>(() => {});
    let sent = 0;
    const pause = async () => (sent++ < 2 ? Promise.resolve() : never);
    const { call } = limited({ texts: ['1234', '5678', '9'], pause, usage: { input: 1, output: 1 } });
    let read = '';
    const reading = async () => {
      for await (const text of sdk.streamText({ ...call, abortSignal: leaving.signal, onError: () => undefined })
        .textStream) {
        read += text;
        if (read.length < 8) continue;
        if (how === 'left') leaving.abort(new Error('left'));
        else leaving.abort();
      }
    };
    await reading().catch(() => undefined);
    expect(read).toBe('12345678');
    await until(async () => (await used()) === 108);
  });

  it('cost the input if they are aborted as their stream begins', async () => {
    const leaving = new AbortController();
    const { call } = limited({ begins: () => leaving.abort(), usage: { input: 1, output: 1 } });
    const stream = sdk.streamText({ ...call, abortSignal: leaving.signal, onError: () => undefined });
    await stream.consumeStream({ onError: () => undefined });
    await until(async () => (await used()) === 100, 2000);
  });

  it('never exceed the limit together: 100 streams at once, a third of which leaves', async () => {
    let running = 0;
    let most = 0;
    const pause = async () => {
      most = Math.max(most, await used());
      await new Promise((resolve) => setTimeout(resolve, 1));
    };
    const limits = [{ limit: 'tokens', key: 'org:1' }];
    let expected = 0;
    let refused = 0;
    const stream = async (index: number) => {
      const leaving = new AbortController();
      const usage = { input: 900, output: index * 10, total: 900 + index * 10 };
      const { call } = limited({ texts: ['a'.repeat(10), 'b'.repeat(10)], pause, usage }, { limits, estimate: costly });
      running++;
      let error: unknown;
      const onError = (event: { error: unknown }) => (error = event.error);
      let bytes = 0;
      try {
        for await (const text of sdk.streamText({ ...call, abortSignal: leaving.signal, onError }).textStream) {
          bytes += text.length;
          if (index % 3 === 0) leaving.abort();
        }
      } catch {
        // An aborted stream may end with an error.
      }
      if (error instanceof RateLimitExceededException) refused++;
      else if (index % 3 !== 0) expected += usage.total;
      expect(bytes).toBeLessThanOrEqual(20);
    };
    await Promise.all(Array.from({ length: 100 }, async (_, index) => stream(index)));
    expect(running).toBe(100);
    // 50 fit at once; the others may come when these have ended.
    expect(refused).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(QUOTA);
    const total = await used();
    expect(total).toBeLessThanOrEqual(QUOTA);
    // What was aborted costs its input and 10 or 20 bytes.
    const aborted = total - expected;
    expect(aborted).toBeGreaterThanOrEqual(0);
    expect(aborted).toBeLessThanOrEqual(34 * 1020);
  });

  it('are bounded, and reserved by the bytes of the prompt, by default', async () => {
    const limits = [{ limit: 'tokens', key: 'org:1' }];
    const model = modelOf({ usage: { input: 1, output: 1 } });
    const middleware = limitModel(limiters, { limits, maxOutputTokens: 500 });
    const call = { model: sdk.wrapLanguageModel({ model, middleware }), prompt: 'ä'.repeat(100), maxRetries: 0 };
    let held = 0;
    for await (const _ of sdk.streamText(call).textStream) held = await used();
    expect(held).toBeGreaterThanOrEqual(700);
    expect(held).toBeLessThan(900);
    expect(model.doStreamCalls[0]!.maxOutputTokens).toBe(500);
    expect(await used()).toBe(2);
    for await (const _ of sdk.streamText({ ...call, maxOutputTokens: 9 }).textStream);
    expect(model.doStreamCalls[1]!.maxOutputTokens).toBe(9);
  });

  it('are refused before anything is reserved if they cannot be estimated', async () => {
    const unbounded = limited({}, { estimate: undefined as never });
    await expect(sdk.generateText(unbounded.call)).rejects.toThrow(
      "nothing bounds the output of the call, so it cannot be reserved. Set 'maxOutputTokens' here or in the call, or pass 'estimate'",
    );
    const image = { type: 'image', image: new Uint8Array([1, 2, 3]), mediaType: 'image/png' };
    const prompt = { prompt: undefined, maxOutputTokens: 5, messages: [{ role: 'user', content: [image] }] };
    await expect(sdk.generateText({ ...unbounded.call, ...prompt })).rejects.toThrow(
      "the prompt contains a file, and its cost in tokens is unknown. Pass the option 'estimate'",
    );
    const wrong = limited({}, { estimate: () => ({ inputTokens: -1, outputTokens: 1.5 }) });
    await expect(sdk.generateText(wrong.call)).rejects.toThrow(
      'expected it to return { inputTokens, outputTokens }, whole numbers >= 0, received { inputTokens: -1, outputTokens: 1.5 }',
    );
    expect(await used()).toBe(0);
    expect([...unbounded.model.doGenerateCalls, ...wrong.model.doGenerateCalls]).toEqual([]);
  });

  /** A conversation in which a tool has returned something. */
  const afterTool = (output: object) => [
    { role: 'user', content: 'Draw a cat' },
    { role: 'assistant', content: [{ type: 'tool-call', toolCallId: '1', toolName: 'draw', input: {} }] },
    { role: 'tool', content: [{ type: 'tool-result', toolCallId: '1', toolName: 'draw', output }] },
  ];
  const content = (...value: object[]) => ({ type: 'content', value: [{ type: 'text', text: 'here:' }, ...value] });
  const image = { data: 'iVBORw0KGgo=', mediaType: 'image/png' };
  const url = 'https://example.com/cat.png';

  it('are refused for images and files in the result of a tool, as for those of a user', async () => {
    const limits = [{ limit: 'tokens', key: 'org:1' }];
    const model = modelOf({ usage: { input: 1, output: 1 } });
    const middleware = limitModel(limiters, { limits, maxOutputTokens: 5 });
    // What the SDK hands to the model: its versions have had all of these types.
    for (const part of [
      { type: 'media', ...image },
      { type: 'image-data', ...image },
      { type: 'image-url', url },
      { type: 'image-file-id', fileId: 'file-1' },
      { type: 'file-data', ...image },
      { type: 'file-url', url },
      { type: 'file-id', fileId: 'file-1' },
      { type: 'file', data: { type: 'reference', reference: { openai: 'file-1' } }, mediaType: 'image/png' },
      { type: 'of-a-later-version' },
    ]) {
      const params = { prompt: afterTool(content(part)), maxOutputTokens: 5 };
      const call = { doGenerate: () => Promise.reject(new Error('was called')), params };
      await expect(middleware.wrapGenerate(call)).rejects.toThrow(
        "the prompt contains a file, and its cost in tokens is unknown. Pass the option 'estimate'",
      );
    }
    const reasoning = [{ role: 'assistant', content: [{ type: 'reasoning-file', ...image }] }];
    const call = {
      doGenerate: () => Promise.reject(new Error('was called')),
      params: { prompt: reasoning, maxOutputTokens: 5 },
    };
    await expect(middleware.wrapGenerate(call)).rejects.toThrow(
      "the prompt contains a file, and its cost in tokens is unknown. Pass the option 'estimate'",
    );
    const wrapped = { model: sdk.wrapLanguageModel({ model, middleware }), maxRetries: 0 };
    const part = { type: version === '5' ? 'media' : 'image-data', ...image };
    const messages = afterTool(content(part));
    await expect(sdk.generateText({ ...wrapped, messages, prompt: undefined })).rejects.toThrow(
      "the prompt contains a file, and its cost in tokens is unknown. Pass the option 'estimate'",
    );
    expect(model.doGenerateCalls).toEqual([]);
    expect(await used()).toBe(0);
  });

  it('are estimated for texts and values in the result of a tool', async () => {
    const limits = [{ limit: 'tokens', key: 'org:1' }];
    const model = modelOf({ usage: { input: 1, output: 1 } });
    const wrapped = sdk.wrapLanguageModel({ model, middleware: limitModel(limiters, { limits, maxOutputTokens: 5 }) });
    for (const output of [
      content(),
      { type: 'json', value: { type: 'content', value: [{ type: 'image-url', url }] } },
    ]) {
      const call = { model: wrapped, maxRetries: 0, messages: afterTool(output), prompt: undefined };
      expect((await sdk.generateText(call)).text).toBe('Hello');
    }
  });

  it('end as they do if they cannot be settled, with a line in the log', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const { call } = limited(
      { usage: { input: 1, output: 1 } },
      { limits: [{ limit: 'tokens', key: 'org:1', units: unitsOnce() }] },
    );
    expect((await sdk.generateText(call)).text).toBe('Hello');
    expect(String(warn.mock.calls[0]?.[0])).toContain('the units of a call could not be settled');
  });
});

/** Units that are right for the estimate, and wrong after it. */
function unitsOnce(): () => number {
  let calls = 0;
  return () => (calls++ === 0 ? 5 : -1);
}

describe('limitModel', () => {
  it('is a middleware by the types of each version', () => {
    expect(byTypes(limiters, { limits: [{ limit: 'tokens' }] })).toHaveLength(3);
  });

  it.each<[string, unknown, string]>([
    ['no limits', { limits: [] }, 'expected a list of at least one { limit, key?, units? }, received []'],
    ['no list', {}, 'limits: expected a list of at least one { limit, key?, units? }, received undefined'],
    ['an unknown limit', { limits: [{ limit: 'tokes' }] }, 'tokes'],
    [
      'an empty key',
      { limits: [{ limit: 'tokens', key: '' }] },
      "key of limit 'tokens': expected a string that is not empty, received ''",
    ],
    ['units', { limits: [{ limit: 'tokens', units: 5 }] }, 'units: expected a function of the tokens, received 5'],
    [
      'maxOutputTokens',
      { limits: [{ limit: 'tokens' }], maxOutputTokens: 0 },
      'expected a whole number >= 1, received 0',
    ],
    [
      'estimate',
      { limits: [{ limit: 'tokens' }], estimate: 9 },
      'estimate: expected a function of the call, received 9',
    ],
  ])('refuses %s at once', (_, options, message) => {
    const make = () => limitModel(limiters, options as LimitModelOptions);
    expect(make).toThrow(RateLimitConfigError);
    expect(make).toThrow(message);
  });

  it('refuses what is no LimiterService', () => {
    expect(() => limitModel({} as LimiterService, { limits: [{ limit: 'tokens' }] })).toThrow(
      'expected the LimiterService',
    );
  });
});
