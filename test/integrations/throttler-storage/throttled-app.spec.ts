import type { Server } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication, Post } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import {
  seconds,
  SkipThrottle,
  Throttle,
  ThrottlerGuard,
  ThrottlerModule,
  type ThrottlerModuleOptions,
} from '@nestjs/throttler';
import { SluiceThrottlerStorage } from '../../../lib/integrations/throttler-storage/index.js';
import { frameworks } from '../../e2e/http-app.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { PATIENCE } from '../../support/redis/patience.mjs';

@Controller()
class Routes {
  @Get('usual')
  usual() {
    return 'usual';
  }

  @Get('more')
  @Throttle({ default: { limit: 4, ttl: seconds(10), blockDuration: seconds(30) } })
  more() {
    return 'more';
  }

  @Post('one')
  @Throttle({ default: { limit: 1, ttl: 1000, blockDuration: 1000 } })
  one() {
    return 'one';
  }

  @Get('sliding')
  @Throttle({ default: { limit: 2, ttl: seconds(10), blockDuration: 0 } })
  sliding() {
    return 'sliding';
  }

  @Get('skipped')
  @SkipThrottle()
  skipped() {
    return 'skipped';
  }
}

const USUAL = [{ limit: 2, ttl: seconds(60), blockDuration: seconds(20), ignoreUserAgents: [/^health/] }];

describe.each(frameworks)('an app with ThrottlerModule and this storage, on %s', (framework) => {
  let app: INestApplication;
  let url: string;
  let now: number;

  async function start(options: ThrottlerModuleOptions): Promise<void> {
    const testing = await Test.createTestingModule({
      imports: [ThrottlerModule.forRoot(options)],
      controllers: [Routes],
      providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
    }).compile();
    testing.useLogger(false);
    app =
      framework === 'fastify' ? testing.createNestApplication(new FastifyAdapter()) : testing.createNestApplication();
    await app.listen(0, '127.0.0.1');
    url = await app.getUrl();
  }

  const storage = () =>
    new SluiceThrottlerStorage({
      redis: process.env['TEST_REDIS_URL']!,
      prefix: freshPrefix(),
      timeout: PATIENCE,
      clock: { now: () => now * 1000, slackMs: 3_600_000 },
    });

  /** The status, what is left, and the waits of a request. */
  async function ask(path: string, { method = 'GET', agent = 'browser', suffix = '' } = {}) {
    const { status, headers } = await fetch(`${url}/${path}`, { method, headers: { 'user-agent': agent } });
    const [left, reset] = ['remaining', 'reset'].map((name) => headers.get(`x-ratelimit-${name}${suffix}`));
    return { status, left, reset, retry: headers.get(`retry-after${suffix}`) };
  }

  beforeEach(() => {
    now = Date.UTC(2030, 0);
  });
  afterEach(async () => {
    (app.getHttpServer() as Server).closeAllConnections();
    await app.close();
  });

  it('allows as many as the limit, blocks until the block ends, and then allows as many again', async () => {
    await start({ throttlers: USUAL, storage: storage() });
    for (let round = 0; round < 2; round++) {
      expect(await ask('usual')).toMatchObject({ status: 200, left: '1', retry: null });
      expect(await ask('usual')).toMatchObject({ status: 200, left: '0', retry: null });
      expect(await ask('usual')).toMatchObject({ status: 429, left: null, retry: '20' });
      now += 5000;
      expect(await ask('usual')).toMatchObject({ status: 429, left: null, retry: '15' });
      now += 15_000;
    }
  });

  it('counts each route with the terms of its own', async () => {
    await start({ throttlers: USUAL, storage: storage() });
    for (const left of ['3', '2', '1', '0'])
      expect(await ask('more')).toMatchObject({ status: 200, left, reset: '10' });
    expect(await ask('more')).toMatchObject({ status: 429, retry: '30' });
    expect(await ask('usual')).toMatchObject({ status: 200, left: '1', reset: '60' });
    const post = { method: 'POST' };
    const statuses: number[] = [];
    for (const passed of [0, 1000, 0, 0]) {
      now += passed;
      statuses.push((await ask('one', post)).status);
    }
    expect(statuses).toEqual([201, 201, 429, 429]);
  });

  it('allows the next hit as soon as the oldest expires if nothing blocks', async () => {
    await start({ throttlers: USUAL, storage: storage() });
    expect((await ask('sliding')).status).toBe(200);
    now += 4000;
    expect((await ask('sliding')).status).toBe(200);
    expect(await ask('sliding')).toMatchObject({ status: 429, retry: '6' });
    now += 6000;
    expect(await ask('sliding')).toMatchObject({ status: 200, left: '0' });
    expect(await ask('sliding')).toMatchObject({ status: 429, retry: '4' });
  });

  it('counts nothing that throttler skips', async () => {
    await start({ throttlers: USUAL, storage: storage() });
    for (let i = 0; i < 4; i++) {
      expect(await ask('skipped')).toMatchObject({ status: 200, left: null });
      expect(await ask('usual', { agent: 'health/1.0' })).toMatchObject({ status: 200, left: null });
    }
    expect(await ask('usual')).toMatchObject({ status: 200, left: '1' });
  });

  it('counts several throttlers, each with its headers', async () => {
    const throttlers = [
      { name: 'long', limit: 3, ttl: seconds(60) },
      { name: 'short', limit: 2, ttl: seconds(1) },
    ];
    await start({ throttlers, storage: storage() });
    expect(await ask('usual', { suffix: '-short' })).toMatchObject({ status: 200, left: '1', reset: '1' });
    expect(await ask('usual', { suffix: '-long' })).toMatchObject({ status: 200, left: '1', reset: '60' });
    expect(await ask('usual', { suffix: '-short' })).toMatchObject({ status: 429, retry: '1' });
    now += 1000;
    expect(await ask('usual', { suffix: '-long' })).toMatchObject({ status: 200, left: '0' });
    now += 1000;
    expect(await ask('usual', { suffix: '-long' })).toMatchObject({ status: 429, retry: '60' });
  });
});
