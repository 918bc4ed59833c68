import { EventEmitter } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { SluiceThrottlerStorage } from '../../../lib/integrations/throttler-storage/index.js';
import { PATIENCE } from '../../support/redis/patience.mjs';
import { startRedis } from '../../support/redis/redis-servers.js';
import { until } from '../../support/time/until.js';

const LIMIT = 20;
const STEP_MS = 10;

/** A connection whose server answers nothing. */
class SilentRedis extends EventEmitter {
  readonly status = 'ready';
  readonly isCluster = false;
  readonly options = { autoResendUnfulfilledCommands: false };
  asked = 0;

  evalsha(): Promise<never> {
    this.asked++;
    return new Promise(() => undefined);
  }

  script(): Promise<string> {
    return Promise.resolve('');
  }
}

let storage: SluiceThrottlerStorage | undefined;
const hit = (key = 'key') => storage!.increment(key, 60_000, LIMIT, 60_000, 'default');
const logged = () => jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);

/** The fake time that a request with several throttlers waits: throttler's guard counts their hits one after the other. */
async function timedRequest(): Promise<number> {
  const since = performance.now();
  const done: string[] = [];
  const request = async () => {
    for (const name of ['short', 'medium', 'long']) {
      await storage!.increment('key', 60_000, LIMIT, 60_000, name);
      done.push(name);
    }
  };
  void request();
  while (done.length < 3) {
    await turn();
    jest.advanceTimersByTime(STEP_MS);
    await turn();
  }
  return performance.now() - since;
}

describe('SluiceThrottlerStorage while Redis fails', () => {
  afterEach(async () => {
    jest.useRealTimers();
    jest.restoreAllMocks();
    await storage?.close();
  });

  it('answers each hit within the deadline when Redis is silent, and at once after some failures', async () => {
    const errors = logged();
    const redis = new SilentRedis();
    storage = new SluiceThrottlerStorage({ redis: redis as unknown as Redis });
    await storage.onModuleInit();
    jest.useFakeTimers();
    const waits: number[] = [];
    let allowed = 0;
    const timedHit = async () => {
      const since = performance.now();
      const { isBlocked } = await hit();
      waits.push(performance.now() - since);
      if (!isBlocked) allowed++;
    };
    for (let i = 0; i < 60; i++) {
      void timedHit();
      await turn();
      jest.advanceTimersByTime(STEP_MS);
      await turn();
    }
    await until(() => waits.length === 60);
    // Time goes on in steps: the deadline, and one of them.
    expect(Math.max(...waits)).toBeLessThanOrEqual(250 + STEP_MS);
    // Those that came before the first deadline.
    const waited = waits.filter((wait) => wait > STEP_MS);
    expect(waited.length).toBeLessThanOrEqual(250 / STEP_MS + 1);
    // One at a time shows if Redis answers again.
    expect(redis.asked).toBeLessThanOrEqual(waited.length + 2);
    expect(allowed).toBe(LIMIT);
    expect(errors.mock.calls.map(([text]) => String(text))).toEqual([
      expect.stringMatching(/^Redis failed, so this process counts its hits in memory: .*250 ms/),
    ]);
  });

  it('lets a request with several throttlers wait once, and asks Redis again by itself', async () => {
    logged();
    const redis = new SilentRedis();
    storage = new SluiceThrottlerStorage({ redis: redis as unknown as Redis });
    await storage.onModuleInit();
    jest.useFakeTimers();
    const waitMs = await timedRequest();
    expect(waitMs).toBeLessThanOrEqual(250 + 2 * STEP_MS);
    expect(redis.asked).toBe(2);
  });

  it('lets a request with several throttlers wait once while it is not connected', async () => {
    logged();
    const redis = new SilentRedis();
    redis.script = () => new Promise(() => undefined);
    storage = new SluiceThrottlerStorage({ redis: redis as unknown as Redis });
    jest.useFakeTimers();
    const waitMs = await timedRequest();
    // It gives up loading its script.
    jest.advanceTimersByTime(60_000);
    expect(waitMs).toBeLessThanOrEqual(250 + 2 * STEP_MS);
    expect(redis.asked).toBe(0);
  });

  it('counts in process when Redis is gone, and on Redis again when it is back', async () => {
    const errors = logged();
    const logs = jest.spyOn(Logger.prototype, 'log').mockImplementation(() => undefined);
    const server = await startRedis();
    try {
      storage = new SluiceThrottlerStorage({ redis: server.url, timeout: PATIENCE });
      await storage.onModuleInit();
      expect(await hit()).toMatchObject({ totalHits: 1 });
      expect(await hit()).toMatchObject({ totalHits: 2 });
      await server.kill();
      const records = await Promise.all(Array.from({ length: 3 * LIMIT }, () => hit()));
      expect(records.filter(({ isBlocked }) => !isBlocked)).toHaveLength(LIMIT);
      await server.start();
      let key = 0;
      // In process, a key that was blocked stays so; a restarted server has none.
      await until(async () => !(await hit()).isBlocked && (await hit(`key-${key++}`)).totalHits === 1);
      expect(errors).toHaveBeenCalledTimes(1);
      expect(logs.mock.calls.map(([text]) => text)).toEqual(['Redis answers again, so hits are counted there']);
    } finally {
      await server.stop();
    }
  });

  it('starts without Redis, and logs why', async () => {
    const errors = logged();
    const server = await startRedis();
    await server.kill();
    try {
      storage = new SluiceThrottlerStorage({ redis: server.url });
      await storage.onModuleInit();
      expect(await hit()).toEqual({ totalHits: 1, timeToExpire: 60, isBlocked: false, timeToBlockExpire: 0 });
      expect(errors.mock.calls.map(([text]) => String(text))).toEqual([
        expect.stringContaining(`option 'redis' points to ${server.host}:${server.port}`),
      ]);
    } finally {
      await server.stop();
    }
  });

  it('counts in process once it is closed, also if it was never used', async () => {
    storage = new SluiceThrottlerStorage({ redis: 'redis://127.0.0.1:1' });
    await storage.close();
    await storage.onModuleInit();
    expect(await hit()).toMatchObject({ totalHits: 1 });
    expect(await hit()).toMatchObject({ totalHits: 2 });
  });
});
