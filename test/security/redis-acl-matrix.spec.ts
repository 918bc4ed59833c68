import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import { LimiterService, RateLimitModule } from '../../lib/index.js';
import { freshPrefix } from '../support/limits/stores.js';
import { type RedisServer, startRedis } from '../support/redis/redis-servers.js';

/** What is missing, and what the log says of it. */
const MATRIX: readonly (readonly [missing: string, log: RegExp | undefined])[] = [
  ['script|load', /EVAL sends them.*NOPERM/],
  ['evalsha', /EVAL sends them.*NOPERM/],
  ['subscribe', /changes of rates do not arrive at once.*NOPERM/],
  ['publish', /changes of rates do not arrive at once.*NOPERM/],
  ['info', /INFO command fails|NOPERM.*info/],
  ['client', undefined],
  ['config', undefined],
];

describe('a Redis user who may do everything', () => {
  // Other specs load scripts into a server that they share.
  let server: RedisServer;
  let admin: Redis;
  const cleanups: (() => unknown)[] = [];
  const logged: string[] = [];

  beforeAll(async () => {
    server = await startRedis();
    admin = new Redis(server.url);
  });
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
    jest.restoreAllMocks();
    logged.length = 0;
  });
  afterAll(async () => {
    admin?.disconnect();
    await server?.stop();
  });

  const start = async (redis: string, prefix: string) => {
    const define = { api: { algo: 'fixed-window', rate: 5, interval: '1d' } } as const;
    const module = RateLimitModule.forRoot({ redis, prefix, timeout: '5s', define });
    const app = await Test.createTestingModule({ imports: [module] }).compile();
    await app.init();
    cleanups.push(() => app.close());
    return app.get(LimiterService);
  };

  it.each(MATRIX)('but %s counts exactly, and may change rates', async (missing, log) => {
    const remember = (message: unknown) => void logged.push(String(message));
    for (const level of ['log', 'warn', 'error'] as const) {
      jest.spyOn(Logger.prototype, level).mockImplementation(remember);
    }
    jest.spyOn(console, 'warn').mockImplementation(remember);
    await admin.script('FLUSH');
    const prefix = freshPrefix();
    const name = `user-${prefix}`;
    await admin.call('ACL', 'SETUSER', name, 'on', '>secret', '~*', '&*', '+@all', `-${missing}`);
    const url = new URL(server.url);
    Object.assign(url, { username: name, password: 'secret' });
    const [one, two] = [await start(url.href, prefix), await start(url.href, prefix)];
    const decisions = [];
    for (let i = 0; i < 6; i++) decisions.push(await (i % 2 ? one : two).for('api').consume('a'));
    expect(decisions.map(({ allowed, source }) => `${source} ${allowed}`)).toEqual([
      ...Array.from({ length: 5 }, () => 'redis true'),
      'redis false',
    ]);
    await one.setRate('api', { rate: 7 });
    expect((await two.getRate('api')).override?.patch).toEqual({ rate: 7 });
    expect(await two.for('api').consume('a')).toMatchObject({ allowed: true, source: 'redis', remaining: 1 });
    if (log === undefined) expect(logged.filter((line) => /NOPERM/.test(line))).toEqual([]);
    else expect(logged.some((line) => log.test(line))).toBe(true);
  });
});
