import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, HttpException, Logger } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  type LimitDefinition,
  MemoryStore,
  RateLimitGuard,
  RateLimitModule,
  type RateLimitModuleOptions,
  RateLimitStoreError,
  type RequestReader,
} from '../../../lib/index.js';
import { NotingResponse } from '../../support/http/responses.js';

@Controller()
class Routes {
  get() {}
}

const one: LimitDefinition = { name: 'one', algo: 'fixed-window', rate: 1, interval: '1m', key: 'global' };
const busy: LimitDefinition = {
  name: 'busy',
  algo: 'adaptive',
  scope: 'instance',
  key: 'global',
  min: 1,
  max: 1,
  initial: 1,
};
const usual = { statusCode: 429, message: 'Too many requests', error: 'Too Many Requests', limits: ['one'] };
const TYPES = 'https://iana.org/assignments/http-problem-types';

let app: TestingModule | undefined;

/** An app without a server, which is asked whether a call may pass, over HTTP or another transport. */
async function start(options: RateLimitModuleOptions) {
  app = await Test.createTestingModule({
    imports: [RateLimitModule.forRoot({ headers: false, ...options })],
    controllers: [Routes],
  }).compile();
  await app.createNestApplication().init();
  const guard = app.get(RateLimitGuard);
  const handler = Reflect.get(Routes.prototype, 'get');
  return (response: object = {}, type = 'http') => {
    const context = new ExecutionContextHost([{}, response], Routes, handler);
    context.setType(type);
    return guard.canActivate(context);
  };
}

/** The error that a call is refused with, which is one of HTTP. */
async function refusal(answer: boolean | Promise<boolean>): Promise<HttpException> {
  const error = await Promise.resolve(answer).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(HttpException);
  return error as HttpException;
}

/** A store whose server is gone. */
function broken(failure: Error): MemoryStore {
  const store = new MemoryStore();
  store.check = () => Promise.reject(failure);
  return store;
}

function failWithoutText(): never {
  throw Object.create(null);
}

afterEach(async () => {
  jest.restoreAllMocks();
  await app?.close();
  app = undefined;
});

describe('the answer to a call that is refused', () => {
  it.each<[string, unknown]>([
    ['null', null],
    ['[]', []],
    ["'text'", 'text'],
  ])('is as it would be without a function that makes a body of %s, which the log tells', async (shown, made) => {
    const error = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    const ask = await start({ limits: [{ ...one, body: () => made as object }] });
    await ask();
    expect((await refusal(ask())).getResponse()).toEqual(usual);
    expect(error.mock.calls).toEqual([
      [
        "the function 'body' of limit 'one' failed, so the rejection has its default form",
        `expected a string 'message' and an object 'body' and no promise, received ${shown}`,
      ],
    ]);
  });

  it('is as it would be without a function that makes a body that has no JSON, which the log tells', async () => {
    const error = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    const ask = await start({ limits: [{ ...one, body: () => ({ price: 1n }) }] });
    await ask();
    expect((await refusal(ask())).getResponse()).toEqual(usual);
    expect(error.mock.calls).toEqual([
      [expect.stringContaining("the function 'body' of limit 'one' failed"), expect.stringContaining('BigInt')],
    ]);
  });

  it.each(['message', 'body'])(
    'is as it would be without a function of %s that throws what has no text',
    async (option) => {
      const error = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
      const ask = await start({ limits: [{ ...one, [option]: failWithoutText }] });
      await ask();
      expect((await refusal(ask())).getResponse()).toEqual(usual);
      expect(error.mock.calls).toEqual([
        [expect.stringContaining(`the function '${option}'`), 'the thrown value has no text'],
      ]);
    },
  );

  it('names the limit that refuses, and those of its texts and bodies', async () => {
    const two: LimitDefinition = {
      ...one,
      name: 'two',
      rate: 2,
      message: 'Two',
      body: (_, __, body) => ({ two: body }),
    };
    const ask = await start({ limits: [two, { ...one, message: 'One' }] });
    await ask();
    const error = await refusal(ask());
    expect([error.message, error.getResponse()]).toEqual(['One', { ...usual, message: 'One' }]);
  });

  it('over a transport of its own has no problem details, which are of HTTP', async () => {
    const reader: RequestReader = { transport: 'chat', read: () => ({}) };
    const ask = await start({ limits: [one], problem: true, readers: [reader] });
    await ask({}, 'chat');
    const error = await refusal(ask({}, 'chat'));
    expect(error.getResponse()).toEqual(usual);
    expect((await refusal(ask())).getResponse()).toMatchObject({ type: `${TYPES}#quota-exceeded` });
  });

  it('is what the reader of its transport fails with', async () => {
    const failure = new Error('no words');
    const refuse = () => {
      throw failure;
    };
    const ask = await start({ limits: [one], readers: [{ transport: 'chat', read: () => ({}), refuse }] });
    await ask({}, 'chat');
    await expect(ask({}, 'chat')).rejects.toBe(failure);
  });
});

describe('the answer of an instance that is busy', () => {
  it('says so, and blames no client', async () => {
    const ask = await start({ limits: [busy] });
    await ask();
    const error = await refusal(ask());
    expect([error.getStatus(), error.getResponse()]).toEqual([
      503,
      { statusCode: 503, message: 'Too busy, try again later', error: 'Service Unavailable', limits: ['busy'] },
    ]);
  });

  it('says so in problem details', async () => {
    const ask = await start({ limits: [busy], problem: true });
    await ask();
    const response = new NotingResponse();
    expect((await refusal(ask(response))).getResponse()).toEqual({
      type: `${TYPES}#temporary-reduced-capacity`,
      title: 'Temporary Reduced Capacity',
      status: 503,
      detail: 'Too busy, try again later',
      'violated-policies': ['busy'],
    });
    expect(response.headers['Content-Type']).toBe('application/problem+json');
  });
});

describe('the answer where limits cannot be checked', () => {
  const unavailable = { statusCode: 503, message: 'Rate limits cannot be checked at the moment' };

  it('keeps what the store failed with, and says to come back', async () => {
    jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    const cause = new RateLimitStoreError('no answer');
    const ask = await start({ limits: [one], store: broken(cause), onStoreError: 'deny' });
    const response = new NotingResponse();
    const error = await refusal(ask(response));
    expect(error.getResponse()).toEqual({ ...unavailable, error: 'Service Unavailable' });
    expect([error.message, error.cause]).toEqual([unavailable.message, cause]);
    expect(response.headers).toEqual({ 'Retry-After': '1' });
  });

  it('says so in problem details, whose message is a text', async () => {
    jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    const store = broken(new RateLimitStoreError('no answer'));
    const ask = await start({ limits: [one], store, onStoreError: 'deny', problem: true });
    const error = await refusal(ask());
    expect(error.message).toBe(unavailable.message);
    expect(error.getResponse()).toMatchObject({ status: 503, detail: unavailable.message });
  });

  it('is an error of the store that is none of its own as it is', async () => {
    const failure = new TypeError('a bug');
    const ask = await start({ limits: [one], store: broken(failure) });
    await expect(ask()).rejects.toBe(failure);
  });

  it('is given to a request that is held while the app shuts down', async () => {
    const held: LimitDefinition = { ...one, algo: 'leaky-bucket', queue: 10 };
    const ask = await start({ limits: [held] });
    await ask();
    const response = new NotingResponse();
    const waiting = refusal(ask(response));
    await app?.close();
    const error = await waiting;
    expect([error.getStatus(), error.message]).toEqual([503, 'The server is shutting down']);
    expect(error.cause).toEqual(new RateLimitStoreError('the app is shutting down'));
    expect(response.headers['Retry-After']).toBe('1');
  });
});
