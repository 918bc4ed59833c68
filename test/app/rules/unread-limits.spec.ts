import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Controller, Get, Injectable, Logger, type Type, UseInterceptors } from '@nestjs/common';
import { MessagePattern } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { RateLimit, RateLimitConfigError, RateLimitModule } from '../../../lib/index.js';

const limit = { algo: 'gcra', rate: 1, interval: '1s' } as const;

let warned: string[];
beforeEach(() => {
  warned = [];
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((text: unknown) => void warned.push(String(text)));
});
afterEach(() => {
  jest.restoreAllMocks();
});

async function start(providers: Type[], controllers: Type[] = [], guard: 'custom' | true = true): Promise<void> {
  const imports = [RateLimitModule.forRootAsync({ guard, useFactory: () => ({ define: { login: limit } }) })];
  const app = await Test.createTestingModule({ imports, providers, controllers }).compile();
  await app.init();
  await app.close();
}

const notRead = (place: string) =>
  `@RateLimit on ${place}: Nest calls no guard before it, so nothing is limited there. @RateLimit belongs on routes, and on messages, ` +
  "fields and tools. Elsewhere, define the limit by a name in 'define', and put @Limited('<name>') on a method " +
  "that returns a promise, or inject it with @InjectLimiter('<name>') and call its consume()";

@Injectable()
class Mails {
  @RateLimit(limit)
  send() {}

  @UseInterceptors()
  @RateLimit('login')
  receive() {}

  list() {}
}

@Injectable()
@RateLimit('login')
class Reports {
  make() {}
}

@Controller()
class Orders {
  @Get()
  @RateLimit('login')
  list() {}

  @RateLimit('login')
  helper() {}
}

it('limits that nothing reads are reported at start, each with its place', async () => {
  await start([Mails, Reports], [Orders]);
  expect(warned).toEqual([
    notRead('Orders.helper'),
    notRead('Mails.send'),
    notRead('Mails.receive'),
    notRead('Reports'),
  ]);
});

it('limits of routes, messages, and methods that other packages decorate are not', async () => {
  @Controller()
  @RateLimit('login')
  class Routes {
    @Get()
    list() {}

    @MessagePattern('sum')
    @RateLimit(limit)
    sum() {}
  }

  @WebSocketGateway()
  class Gateway {
    @SubscribeMessage('say')
    @RateLimit(limit)
    say() {}
  }

  const onMethod: MethodDecorator = (_prototype, _name, { value }: PropertyDescriptor) =>
    Reflect.defineMetadata('a-package:tool', {}, value as object);
  const onPrototype: MethodDecorator = (prototype, name) =>
    Reflect.defineMetadata('a-package:command', {}, prototype, name);

  @Injectable()
  class Tools {
    @onMethod
    @RateLimit(limit)
    first() {}

    @RateLimit(limit)
    @onPrototype
    second() {}
  }
  await start([Tools, Gateway], [Routes], 'custom');
  expect(warned).toEqual([]);
});

it('are refused with the same text where their class has no name that lasts', async () => {
  @Injectable()
  class A {
    @RateLimit(limit)
    send() {}
  }
  await expect(start([A])).rejects.toThrow(new RateLimitConfigError(notRead('A.send')));
});
