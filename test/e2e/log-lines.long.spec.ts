import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, type LoggerService, Sse, UseGuards } from '@nestjs/common';
import {
  ClientProxyFactory,
  EventPattern,
  MessagePattern,
  type MicroserviceOptions,
  Transport,
} from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { firstValueFrom, NEVER } from 'rxjs';
import {
  type LimitDefinition,
  MemoryStore,
  RateLimit,
  RateLimitGuard,
  RateLimitModule,
  RateLimitStoreError,
} from '../../lib/index.js';
import { freePort } from '../support/processes/ports.mjs';
import { startRedis } from '../support/redis/redis-servers.js';
import { freshPrefix } from '../support/limits/stores.js';
import { connect } from './websocket-clients.js';
import { until } from '../support/time/until.js';
import { PATIENCE } from '../support/redis/patience.mjs';

const few = { name: 'few', algo: 'fixed-window', rate: 3, interval: '1h' } as const;

@Controller()
class ReportsController {
  @Get()
  @RateLimit(few)
  list() {}
}

const ignore = () => undefined;

/** How often a handler was reached that is not to be. */
const work = { reached: 0 };
const none: LimitDefinition = { ...few, name: 'none', rate: 1, cost: 2, key: 'global' };

@Controller()
@RateLimit(none)
class NoneController {
  @Get('http')
  http() {
    work.reached++;
  }

  @Sse('events')
  events() {
    work.reached++;
    return NEVER;
  }

  @MessagePattern('message')
  message() {
    work.reached++;
  }

  @EventPattern('event')
  event(_data: unknown) {
    work.reached++;
  }
}

@WebSocketGateway()
@UseGuards(RateLimitGuard)
@RateLimit(none)
class NoneGateway {
  @SubscribeMessage('message')
  message() {
    work.reached++;
  }
}

const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

describe('the log', () => {
  it('has one line a change of state, and none a request', async () => {
    const server = await startRedis();
    cleanups.push(() => server.stop());
    const lines: string[] = [];
    // Nest appends the context to what is logged.
    const keep =
      (level: string) =>
      (message: unknown, ...rest: unknown[]) => {
        if (String(rest.at(-1)).startsWith('RateLimit')) lines.push(`${level}: ${String(message).replace(/: .*/, '')}`);
      };
    const logger: LoggerService = { log: keep('log'), error: keep('error'), warn: keep('warn') };
    const testing = await Test.createTestingModule({
      imports: [
        RateLimitModule.forRoot({ redis: server.url, prefix: freshPrefix(), refusalCache: false, timeout: PATIENCE }),
      ],
      controllers: [ReportsController],
    }).compile();
    testing.useLogger(logger);
    const app = testing.createNestApplication();
    await app.listen(0, '127.0.0.1');
    cleanups.push(() => app.close());
    const url = await app.getUrl();
    const requests = (count: number) =>
      Promise.all(
        Array.from({ length: count }, async () => (await fetch(url, { headers: { connection: 'close' } })).status),
      );

    expect((await requests(20)).filter((status) => status === 429)).toHaveLength(17);
    expect(lines).toEqual([]);

    const failing =
      "error: the store failed, so each limit follows its 'onStoreError' (by default each instance counts by itself)";
    const back = 'log: the store answers again';
    for (let round = 1; round <= 2; round++) {
      await server.kill();
      await requests(20);
      expect(lines).toEqual([...Array.from({ length: round - 1 }, () => [failing, back]).flat(), failing]);
      await server.start();
      await until(async () => {
        await requests(1);
        return lines.length >= 2 * round;
      });
      await requests(20);
      expect(lines).toEqual(Array.from({ length: round }, () => [failing, back]).flat());
    }
  });

  it.each(['refusals', 'refusals by a store that fails'])('has no line of %s, over any transport', async (why) => {
    work.reached = 0;
    const lines: unknown[] = [];
    const keep = (line: unknown) => void lines.push(line);
    const store = new MemoryStore();
    const fails = why !== 'refusals';
    if (fails) jest.spyOn(store, 'check').mockRejectedValue(new RateLimitStoreError('down'));
    const testing = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ store, onStoreError: 'deny' })],
      controllers: [NoneController],
      providers: [NoneGateway],
    }).compile();
    testing.useLogger({ log: ignore, error: keep, warn: keep });
    const app = testing.createNestApplication();
    cleanups.push(() => store.close());
    const options = { transport: Transport.TCP, options: { host: '127.0.0.1', port: await freePort() } } as const;
    app.connectMicroservice<MicroserviceOptions>(options, { inheritAppConfig: true });
    await app.startAllMicroservices();
    await app.listen(0, '127.0.0.1');
    cleanups.push(() => app.close());
    const url = await app.getUrl();
    const client = ClientProxyFactory.create(options);
    cleanups.push(() => client.close());
    const socket = await connect('socket.io', url);
    cleanups.push(async () => socket.close());

    const status = fails ? 503 : 429;
    for (let round = 0; round < 2; round++) {
      for (const path of ['/http', '/events']) {
        expect((await fetch(url + path, { headers: { connection: 'close' } })).status).toBe(status);
      }
      const answer: unknown = await firstValueFrom(client.send('message', {})).catch((error: unknown) => error);
      expect(answer).toMatchObject({ statusCode: status });
      socket.send('message', {});
      expect(await socket.next()).toMatchObject({ event: 'exception', data: { statusCode: status } });
      await firstValueFrom(client.emit('event', {}), { defaultValue: undefined });
      // One connection is read in order, so the event has been seen when this has been answered.
      await firstValueFrom(client.send('message', {})).catch(() => undefined);
    }
    // What is logged of an event is logged in the turns after.
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(work.reached).toBe(0);
    const state = expect.stringContaining('the store failed');
    expect(lines).toEqual(fails ? [state] : []);
  });
});
