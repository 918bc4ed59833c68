import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, type LoggerService } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { RateLimit } from '../../lib/decorators/rate-limit.decorator.js';
import { RateLimitModule } from '../../lib/rate-limit.module.js';
import { startRedis } from '../support/redis-servers.js';
import { freshPrefix } from '../support/stores.js';

@Controller()
class ReportsController {
  @Get()
  @RateLimit({ name: 'few', algo: 'fixed-window', rate: 3, interval: '1h' })
  list() {}
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
      imports: [RateLimitModule.forRoot({ redis: server.url, prefix: freshPrefix(), refusalCache: false })],
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

    const failing = "error: the store failed, so each limit does what its 'onStoreError' says";
    const back = 'log: the store answers again';
    for (let round = 1; round <= 2; round++) {
      await server.kill();
      await requests(20);
      expect(lines).toEqual([...Array.from({ length: round - 1 }, () => [failing, back]).flat(), failing]);
      await server.start();
      const deadline = Date.now() + 10_000;
      while (lines.length < 2 * round && Date.now() < deadline) {
        await requests(1);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      await requests(20);
      expect(lines).toEqual(Array.from({ length: round }, () => [failing, back]).flat());
    }
  });
});
