import 'reflect-metadata';
import type { Server } from 'node:http';
import { afterEach, expect, it, jest } from '@jest/globals';
import { Controller, Get, type INestApplication, Inject, Module, type OnApplicationShutdown } from '@nestjs/common';
import { NestFactory as Factory } from '@nestjs/core';
import type { Redis as AdminClient } from 'ioredis';
import { createClient as create } from 'redis';
import { RateLimit, RateLimitModule } from '../../lib/index.js';
import { withOwnRedis } from '../support/redis/own-redis.js';
import { untriedCode } from './rows.js';

let admin: AdminClient;
let ownUrl: string;
withOwnRedis((client, server) => {
  [admin, ownUrl] = [client, server.url];
});

/** The one of node-redis, on the server of this spec. */
const createClient = (_: { url: string }) => create({ url: ownUrl });

const REDIS = Symbol('REDIS');

async function connect() {
  const client = createClient({ url: process.env['REDIS_URL'] ?? 'redis://localhost:6379' });
  client.on('error', (error: Error) => console.error(`Redis: ${error.message}`));
  return client.connect();
}

type Redis = Awaited<ReturnType<typeof connect>>;

@Module({ providers: [{ provide: REDIS, useFactory: connect }], exports: [REDIS] })
class RedisModule implements OnApplicationShutdown {
  constructor(@Inject(REDIS) private readonly redis: Redis) {}

  async onApplicationShutdown() {
    await this.redis.close();
  }
}

@Controller('reports')
class ReportsController {
  @Get()
  @RateLimit({ algo: 'token-bucket', rate: 5, interval: '10s' })
  list() {
    return ['first'];
  }
}

@Module({
  imports: [
    RedisModule,
    RateLimitModule.forRootAsync({
      imports: [RedisModule],
      inject: [REDIS],
      useFactory: (redis: Redis) => ({ redis }),
    }),
  ],
  controllers: [ReportsController],
})
class AppModule {}

let running: INestApplication;
afterEach(() => void jest.restoreAllMocks());

/** Nest's, on a port that is free. */
const NestFactory = {
  create: async (module: typeof AppModule) => {
    running = await Factory.create(module, { logger: false, abortOnError: false });
    return {
      enableShutdownHooks: () => void running.enableShutdownHooks(),
      listen: (_: number) => running.listen(0, '127.0.0.1'),
    };
  },
};

it('the app of the guide counts on node-redis, and closes its client last', async () => {
  const errors = jest.spyOn(console, 'error').mockImplementation(() => undefined);
  const app = await NestFactory.create(AppModule);
  app.enableShutdownHooks(); // closes the connection when the process gets a signal
  await app.listen(3000);
  const url = await running.getUrl();
  const client = running.get<Redis>(REDIS);
  const statuses = [];
  for (let request = 0; request < 6; request++) statuses.push((await fetch(`${url}/reports`)).status);
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
  expect(await admin.keys('sluice:*')).not.toEqual([]);
  expect(client.isOpen).toBe(true);
  (running.getHttpServer() as Server).closeAllConnections();
  await running.close();
  expect(client.isOpen).toBe(false);
  expect(errors).not.toHaveBeenCalled();
});

it('has no other code', () =>
  expect(untriedCode('docs/guides/redis-clients.md', 'test/docs/redis-clients.long.spec.ts')).toEqual([]));
