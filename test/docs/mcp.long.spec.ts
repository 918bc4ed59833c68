import 'reflect-metadata';
import { afterEach, expect, it } from '@jest/globals';
import { type INestApplication, Module, type Type } from '@nestjs/common';
import { NestFactory as Factory } from '@nestjs/core';
import { Payload } from '@nestjs/microservices';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpController, McpStrategy, StreamableHttpTransport, Tool } from '@rekog/mcp-nest';
import { z } from 'zod';
import { RateLimit, RateLimitModule as Limits, type RateLimitModuleOptions } from '../../lib/index.js';
import { bySession, McpReader } from '../../lib/integrations/mcp/index.js';
import { freshPrefix } from '../support/limits/stores.js';
import { PATIENCE } from '../support/redis/patience.mjs';
import { untriedCode } from './rows.js';

const redis = process.env['TEST_REDIS_URL']!;

/** On the server of the tests. */
const RateLimitModule = {
  forRoot: (options: RateLimitModuleOptions) =>
    Limits.forRoot({ ...options, redis, prefix: freshPrefix(), timeout: PATIENCE }),
};

@McpController()
class SearchTools {
  @Tool({ name: 'search', description: 'Searches', parameters: z.object({ text: z.string() }) })
  @RateLimit(
    { name: 'searches', algo: 'sliding-window', rate: 60, interval: '1m' },
    { name: 'session', algo: 'token-bucket', rate: 5, interval: '10s', key: bySession },
  )
  search(@Payload() { text }: { text: string }) {
    return { content: [{ type: 'text', text: `Nothing about ${text}` }] };
  }
}

@Module({
  imports: [RateLimitModule.forRoot({ redis: 'redis://localhost:6379' })],
  controllers: [SearchTools],
})
class AppModule {}

let running: INestApplication | undefined;
afterEach(() => running?.close());

/** Nest's, on a port that is free. */
const NestFactory = {
  create: async (module: Type): Promise<INestApplication> => {
    const app = await Factory.create(module, { logger: false, abortOnError: false });
    const listen = app.listen.bind(app);
    app.listen = () => listen(0, '127.0.0.1');
    return (running = app);
  },
};

it('has no code that is not tried here', () => {
  expect(untriedCode('docs/guides/mcp.md', 'test/docs/mcp.long.spec.ts')).toEqual([]);
});

it('limits tools as the guide says', async () => {
  const strategy = new McpStrategy({ name: 'search', version: '1.0.0', transports: [new StreamableHttpTransport()] });
  const app = await NestFactory.create(AppModule);
  strategy.setHttpAdapter(app.getHttpAdapter());
  app.connectMicroservice({ strategy });
  await app.startAllMicroservices();
  await app.listen(3000);
  const client = new Client({ name: 'test', version: '1.0.0' });
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', await app.getUrl())));
  const search = () => client.callTool({ name: 'search', arguments: { text: 'nothing' } });
  for (let call = 0; call < 5; call++) {
    expect((await search()).content).toEqual([{ type: 'text', text: 'Nothing about nothing' }]);
  }
  await expect(search()).rejects.toMatchObject({
    code: -32_029,
    data: {
      status: 'error',
      statusCode: 429,
      message: 'Too many requests',
      error: 'Too Many Requests',
      limits: ['session'],
      limit: 'session',
      retryAfterMs: expect.any(Number) as unknown,
    },
  });
  await client.close();
});

it('takes the reader', async () => {
  const options = RateLimitModule.forRoot({ redis: 'redis://localhost:6379', readers: [McpReader] });
  @Module({ imports: [options] })
  class ReadingModule {}
  const app = await NestFactory.create(ReadingModule);
  await expect(app.init()).resolves.toBe(app);
});
