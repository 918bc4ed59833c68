import { EventEmitter } from 'node:events';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  Controller,
  type ExecutionContext,
  Get,
  HttpException,
  Inject,
  Injectable,
  type NestInterceptor,
} from '@nestjs/common';
import { ApplicationConfig, ExternalContextCreator } from '@nestjs/core';
import { firstValueFrom, map, of, take } from 'rxjs';
import {
  type CheckResult,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitDecision,
  RateLimitExceededException,
  type RateLimitModuleOptions,
  type RequestReader,
} from '../../lib/index.js';
import { HttpApp, startUp } from './http-app.js';

/** A message of a chat, as its library hands it to handlers: a transport that nobody here knows. */
interface Message {
  readonly from: { readonly id: number; readonly host: string };
  readonly reply: EventEmitter;
}

const minute = { algo: 'fixed-window', rate: 1, interval: '1m' } as const;
const define = {
  host: minute,
  sender: { ...minute, key: 'user' },
  slots: { algo: 'concurrency', limit: 1, ttl: '30s', key: 'global' },
  failures: { ...minute, key: 'global', count: 'failed' },
} satisfies Record<string, LimitDefinition>;

@Injectable()
class Bot {
  @Inject(LimiterService)
  private readonly limiters!: LimiterService;

  @RateLimit('host')
  host(@RateLimitDecision() decision?: CheckResult) {
    return decision?.tightest.remaining;
  }

  @RateLimit('sender')
  sender() {
    return 'done';
  }

  async thrown() {
    const result = await this.limiters.check([{ limit: 'host', key: 'a chat' }]);
    if (!result.allowed) throw new RateLimitExceededException(result);
  }

  @RateLimit('slots')
  slow() {
    return 'done';
  }

  @RateLimit('failures')
  login() {
    return 'wrong password';
  }
}

class ChatError extends Error {}

@Injectable()
class Words {
  readonly slowDown = 'Slow down';
}

@Injectable()
class ChatReader implements RequestReader {
  readonly transport = 'chat';

  constructor(private readonly words: Words) {}

  read(context: ExecutionContext) {
    const { from, reply } = context.getArgByIndex<Message>(0);
    return { request: { ip: from.host, user: { id: from.id } }, response: reply };
  }

  call(context: ExecutionContext) {
    return context.getArgByIndex<Message>(0);
  }

  refuse(exception: HttpException) {
    return new ChatError(`${this.words.slowDown}: ${exception.message}`, { cause: exception });
  }
}

const plainReader: RequestReader = {
  transport: 'chat',
  read: (context) => ({ request: { ip: context.getArgByIndex<Message>(0).from.host } }),
};

const message = (host: string, id = 1): Message => ({ from: { id, host }, reply: new EventEmitter() });

let app: HttpApp | undefined;
afterEach(() => app?.close());

async function start(limits: RateLimitModuleOptions, interceptors: NestInterceptor[] = []) {
  const started = await HttpApp.start('express', {
    providers: [Bot, Words, ChatReader],
    limits: { define, ...limits },
  });
  app = started;
  // They run before those of the library, like those of a module that is imported earlier.
  started.nest
    .get(ApplicationConfig)
    .getGlobalInterceptors()
    .unshift(...interceptors);
  const contexts = started.nest.get(ExternalContextCreator, { strict: false });
  const bot = started.nest.get(Bot);
  const handler = (name: 'host' | 'sender' | 'slow' | 'thrown' | 'login') => {
    const enhancers = { guards: true, interceptors: true, filters: true };
    const parameters = { exchangeKeyForValue: () => undefined };
    const callback = Bot.prototype[name] as (...args: unknown[]) => unknown;
    const args = '__routeArguments__';
    return contexts.create(bot, callback, name, args, parameters, undefined, undefined, enhancers, 'chat');
  };
  const service = started.nest.get(LimiterService);
  return { handler, left: async (name: string) => (await service.for(name).peek('global')).remaining };
}

describe('a reader of a transport', () => {
  it('as a class: says whose call it is, how it is refused, and when it ends', async () => {
    const { handler, left } = await start({ readers: [ChatReader] });
    const [host, sender, slow] = [handler('host'), handler('sender'), handler('slow')];
    expect(await host(message('198.51.100.1'))).toBe(0);
    const error = await host(message('198.51.100.1')).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ChatError);
    expect(error).toMatchObject({ message: 'Slow down: Too many requests' });
    expect((error as Error).cause).toBeInstanceOf(RateLimitExceededException);
    expect(await host(message('198.51.100.2'))).toBe(0);
    expect(await sender(message('198.51.100.1', 1))).toBe('done');
    await expect(sender(message('198.51.100.1', 1))).rejects.toThrow('Slow down');
    expect(await sender(message('198.51.100.1', 2))).toBe('done');
    const answered = message('198.51.100.1');
    expect(await slow(answered)).toBe('done');
    expect(await left('slots')).toBe(0);
    answered.reply.emit('close');
    expect(await left('slots')).toBe(1);
  });

  it('as an object: parts that it leaves out are as for any other transport', async () => {
    const { handler, left } = await start({ readers: [plainReader] });
    const [host, slow] = [handler('host'), handler('slow')];
    expect(await host(message('198.51.100.1'))).toBeUndefined();
    await expect(host(message('198.51.100.1'))).rejects.toBeInstanceOf(RateLimitExceededException);
    expect(await slow(message('198.51.100.1'))).toBe('done');
    expect(await left('slots')).toBe(1);
  });

  const refuse = (value: unknown): never => {
    throw new ChatError(String(value));
  };
  it.each<[string, NestInterceptor['intercept'], number]>([
    ['failed if a global interceptor throws because of its value', (_, next) => next.handle().pipe(map(refuse)), 0],
    [
      'failed if it throws after it awaited the value',
      async (_, next) => refuse(await firstValueFrom(next.handle())),
      0,
    ],
    ['succeeded if a global interceptor takes only its value', (_, next) => next.handle().pipe(take(1)), 1],
    ['succeeded if it awaits the value', async (_, next) => of(await firstValueFrom(next.handle())), 1],
  ])('sees that a call %s', async (_, intercept, rest) => {
    const { handler, left } = await start({ readers: [plainReader] }, [{ intercept }]);
    const answer = await handler('login')(message('198.51.100.1')).catch((error: unknown) => (error as Error).message);
    expect(answer).toBe('wrong password');
    expect(await left('failures')).toBe(rest);
  });

  it('says how a refusal is told that code throws, and may fail', async () => {
    const { handler } = await start({ readers: [ChatReader] });
    const thrown = handler('thrown');
    await thrown(message('198.51.100.1'));
    await expect(thrown(message('198.51.100.1'))).rejects.toThrow('Slow down: Too many requests');
    await app?.close();
    const failing = { ...plainReader, refuse: () => Promise.reject(new Error('No chat is open')) };
    const again = (await start({ readers: [failing] })).handler('thrown');
    await again(message('198.51.100.1'));
    await expect(again(message('198.51.100.1'))).rejects.toThrow('No chat is open');
  });

  it('replaces the reader of a known transport', async () => {
    @Controller()
    class Routes {
      @Get()
      @RateLimit('host')
      list() {}
    }
    const reader: RequestReader = { transport: 'http', read: () => ({ request: { ip: '198.51.100.9' } }) };
    const started = await HttpApp.start('express', { limits: { readers: [reader], define }, controllers: [Routes] });
    app = started;
    expect((await started.get('/')).status).toBe(200);
    expect(await started.nest.get(LimiterService).for('host').peek('ip:198.51.100.9')).toMatchObject({ remaining: 0 });
  });
});

describe('the option readers', () => {
  it.each<[string, unknown, string]>([
    [
      'no list',
      plainReader,
      "RateLimitModule.readers: expected a list of RequestReaders, received { transport: 'chat', read: [Function: read] }",
    ],
    ['no reader', [{ transport: 'chat' }], 'expected a list of RequestReaders'],
    ['a transport without a name', [{ ...plainReader, transport: '' }], 'expected a list of RequestReaders'],
    ['a part of the wrong kind', [{ ...plainReader, refuse: 'no' }], 'expected a list of RequestReaders'],
    ['nothing', [null], 'expected a list of RequestReaders'],
    ['a class that reads nothing', [Words], 'expected a list of RequestReaders'],
    [
      'two of one transport',
      [plainReader, ChatReader],
      "two readers have the transport 'chat'. Add one for each transport",
    ],
  ])('refuses %s', async (_, readers, message) => {
    const starting = startUp({ readers } as RateLimitModuleOptions, [], { providers: [Words, ChatReader] });
    await expect(starting).rejects.toThrow(message);
  });
});
