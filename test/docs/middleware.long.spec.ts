import 'reflect-metadata';
import type { Server } from 'node:http';
import { afterEach, expect, it } from '@jest/globals';
import {
  Body,
  Controller,
  type ExecutionContext,
  type INestApplication,
  type MiddlewareConsumer,
  Module,
  type NestModule,
  Post,
} from '@nestjs/common';
import { NestFactory as Factory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { RateLimitMiddleware, rateLimitMiddleware, RateLimitModule } from '../../lib/index.js';
import { untriedCode } from './rows.js';

/** What Express and Fastify both have before a route is known. */
interface EarlyRequest {
  originalUrl: string;
  headers: Record<string, string | undefined>;
}

const requestOf = (context: ExecutionContext) => context.switchToHttp().getRequest<EarlyRequest>();

@Controller()
class TasksController {
  @Post('tasks')
  trigger(@Body() batch: unknown[]) {
    return { triggered: batch.length };
  }
}

@Module({
  imports: [
    RateLimitModule.forRoot({
      limits: [
        { name: 'flood', algo: 'gcra', rate: 50, interval: '1s', phase: 'middleware' },
        {
          name: 'api-key',
          algo: 'token-bucket',
          rate: 25,
          interval: '1s',
          burst: 100,
          phase: 'middleware',
          key: (context) => requestOf(context).headers.authorization?.replace(/^Bearer /, ''),
          skip: (context) => requestOf(context).originalUrl.startsWith('/health'),
          onMissingKey: 'refuse',
        },
        { name: 'hourly', algo: 'sliding-window', rate: 5_000, interval: '1h', key: 'user' },
      ],
    }),
  ],
  controllers: [TasksController],
})
class AppModule {}

let running: INestApplication;
afterEach(async () => {
  (running.getHttpServer() as Server).closeAllConnections();
  await running.close();
});

async function listen(app: INestApplication): Promise<void> {
  running = app;
  await app.listen(0, '127.0.0.1');
}

/** Nest's, on a port that is free. */
const NestFactory = {
  create: async <App extends INestApplication>(module: typeof AppModule, adapter?: FastifyAdapter) => {
    const options = { logger: false, abortOnError: false } as const;
    const app = await (adapter === undefined
      ? Factory.create(module, options)
      : Factory.create(module, adapter, options));
    const listenApart = () => listen(app);
    return new Proxy(app as App, {
      get: (of, name) => (name === 'listen' ? listenApart : (Reflect.get(of, name) as unknown)),
    });
  },
};

async function post(path: string, token?: string): Promise<[number, string | null]> {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const headers = { 'content-type': 'application/json', ...authorization };
  const response = await fetch((await running.getUrl()) + path, { method: 'POST', headers, body: '[1, 2]' });
  return [response.status, response.headers.get('ratelimit')];
}

async function countsByApiKey(): Promise<void> {
  expect(await post('/tasks', 'tr_1')).toEqual([
    201,
    expect.stringMatching(/^"flood";r=49;t=1, "api-key";r=99;t=1, "hourly";r=4999/),
  ]);
  expect((await post('/tasks', 'tr_2'))[1]).toContain('"api-key";r=99');
  expect((await post('/tasks'))[0]).toBe(400);
  expect(await post('/health')).toEqual([404, expect.stringMatching(/^"flood";r=\d+;t=1$/)]);
}

it('begins with an app that runs', async () => {
  const app = await NestFactory.create(AppModule);
  app.use(rateLimitMiddleware(app));
  await app.listen(3000);
  await countsByApiKey();
});

it('shows the middleware as a hook of Fastify', async () => {
  const app = await NestFactory.create<NestFastifyApplication>(AppModule, new FastifyAdapter());
  const fastify = app.getHttpAdapter().getInstance();
  const limit = rateLimitMiddleware(app);
  fastify.addHook('onRequest', (request, reply, done) => void limit(request, reply, done));
  await app.listen(3000);
  await countsByApiKey();
});

it('shows the middleware of a module', async () => {
  class AppModule implements NestModule {
    configure(consumer: MiddlewareConsumer) {
      consumer.apply(RateLimitMiddleware).exclude('health').forRoutes('{*path}');
    }
  }
  const limits = [{ algo: 'fixed-window', rate: 5, interval: '1m', phase: 'middleware' }] as const;
  const imports = [RateLimitModule.forRoot({ limits: [...limits] })];
  const module = Reflect.decorate([Module({ imports })], AppModule) as typeof AppModule;
  await listen(await Factory.create(module, { logger: false }));
  expect((await post('/tasks'))[1]).toContain('r=4');
  expect((await post('/health'))[1]).toBeNull();
});

it('has no other code', () => {
  expect(untriedCode('docs/guides/middleware.md', 'test/docs/middleware.long.spec.ts')).toEqual([]);
});
