import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, type LoggerService } from '@nestjs/common';
import { Redis } from 'ioredis';
import { type LimitDefinition, RateLimit, RateLimitStoreError, RateLimitTimeoutError } from '../../../../lib/index.js';
import { freshPrefix } from '../../../support/limits/stores.js';
import { until } from '../../../support/time/until.js';
import { World } from './world.js';

const window = { algo: 'fixed-window', rate: 8, interval: '1h', scope: 'world', key: 'global' } as const;
const define = {
  denied: window,
  allowed: { ...window, onStoreError: 'allow' },
  local: { ...window, onStoreError: 'local' },
  here: { algo: 'fixed-window', rate: 2, interval: '1h', key: 'global' },
  quiet: { ...window, mode: 'shadow' },
  guest: { algo: 'fixed-window', rate: 1, interval: '1h', key: 'global', blockFor: '1d', within: 'allowed' },
} satisfies Record<string, LimitDefinition>;

@Controller()
class ReportsController {
  @Get('denied')
  @RateLimit('denied')
  denied(): void {}

  @Get('allowed')
  @RateLimit('allowed')
  allowed(): void {}

  @Get('local')
  @RateLimit('local')
  local(): void {}

  @Get('both')
  @RateLimit('allowed', 'here')
  both(): void {}

  @Get('here')
  @RateLimit('here')
  here(): void {}

  @Get('refused')
  @RateLimit('denied', 'here')
  refused(): void {}
}

/** Keeps what is logged. */
class Log implements LoggerService {
  readonly lines: string[] = [];
  log = (message: unknown): void => void this.lines.push(String(message));
  warn = this.log;
  error = this.log;
}

describe('a region without its home', () => {
  let world: World;
  let log: Log;
  let prefix: string;

  beforeAll(async () => {
    world = await World.start();
  }, 300_000);
  afterAll(() => world.stop());

  beforeEach(() => {
    log = new Log();
    prefix = freshPrefix();
  });
  afterEach(async () => {
    await world.closeApps();
    await world.home.start();
  });

  const start = (more: object = {}) =>
    world.app('us', {
      limits: { prefix, define, localShare: 0.5, ...more },
      controllers: [ReportsController],
      logger: log,
    });

  const ofHome = (): string[] => log.lines.filter((line) => line.startsWith('The home of the regions'));

  it('starts, decides by onStoreError, and says so once', async () => {
    await world.home.stop();
    const us = await start();
    expect(await us.statuses(3, '/denied')).toEqual([503, 503, 503]);
    const refused = await us.get('/denied');
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(await us.statuses(10, '/allowed')).toEqual(Array.from({ length: 10 }, () => 200));
    expect(await us.statuses(5, '/local')).toEqual([200, 200, 200, 200, 429]);
    expect(await us.limiters.for('local').peek('other')).toMatchObject({ source: 'fallback', quota: 4 });
    await expect(us.limiters.for('denied').consume('x')).rejects.toThrow(RateLimitStoreError);
    // Others count as before, together with those that lack their home.
    expect(await us.statuses(3, '/both')).toEqual([200, 200, 429]);
    expect(await us.statuses(1, '/here')).toEqual([429]);
    const address = `127.0.0.1:${world.home.port}`;
    expect(ofHome()).toHaveLength(1);
    const [line] = ofHome();
    expect(line).toMatch(
      new RegExp(`^The home of the regions, ${address}, fails: .*connect ECONNREFUSED ${address}\\. Limits `),
    );
    expect(line).toMatch(
      /Limits of scope 'world' spend the units that this region holds, and then follow their 'onStoreError', by default 'deny'$/,
    );
    await world.home.start();
    await until(async () => (await us.get('/denied')).status === 200);
    expect(ofHome()).toHaveLength(2);
    expect(ofHome()[1]).toBe(`The home of the regions, ${address}, answers again`);
  });

  it('says each reason once, and the error has the latest one as its cause', async () => {
    const admin = new Redis(world.home.url);
    const set = (...rights: string[]) => admin.call('ACL', 'SETUSER', 'default', ...rights);
    try {
      await set('-time');
      const us = await start();
      const failure = () =>
        us.limiters
          .for('denied')
          .consume('a')
          .catch((error: unknown) => error as Error);
      const cause = async () => String(((await failure()) as Error).cause);
      await until(async () => /can't run this command|ACL failure/.test(await cause()));
      const first = await cause();
      await set('+time', '-evalsha', '-eval');
      await until(async () => /no permissions to run the 'eval/.test(await cause()));
      await until(() => ofHome().length === 2);
      for (let i = 0; i < 3; i++) await failure();
      expect(ofHome().map((line) => line.includes(first.replace(/^.*?Error: /, '')))).toEqual([true, false]);
      expect(ofHome()[1]).toContain("no permissions to run the 'eval");
      await set('+@all');
      await until(() => ofHome().some((line) => line.endsWith('answers again')));
      await set('-time');
      await until(() => ofHome().filter((line) => line.includes(first.replace(/^.*?Error: /, ''))).length === 2);
    } finally {
      await set('+@all');
      admin.disconnect();
    }
  });

  it('decides by the option of the module', async () => {
    await world.home.stop();
    const us = await start({ onStoreError: 'allow' });
    expect(await us.statuses(3, '/denied')).toEqual([200, 200, 200]);
  });

  it('begins no block for a call that waits', async () => {
    await world.home.stop();
    const guest = (await start()).limiters.for('guest');
    const within = { allowed: 'everyone' };
    expect(await guest.consume('g', { within })).toMatchObject({ allowed: true });
    await expect(guest.acquire('g', { timeout: 0, within })).rejects.toThrow(RateLimitTimeoutError);
    expect((await guest.peek('g', { within })).retryAfterMs).toBeLessThanOrEqual(3_600_000);
    // An attempt does.
    expect(await guest.consume('g', { within })).toMatchObject({ allowed: false });
    expect((await guest.peek('g', { within })).retryAfterMs).toBeGreaterThan(3_600_000);
  });

  it('charges no other limit of a check that it denies', async () => {
    await world.home.stop();
    const us = await start();
    expect(await us.statuses(3, '/refused')).toEqual([503, 503, 503]);
    expect(await us.statuses(3, '/here')).toEqual([200, 200, 429]);
  });

  it('spends what it holds', async () => {
    const us = await start();
    const limiter = us.limiters.for('denied');
    // Used up to a half, it holds some in advance.
    for (let i = 0; i < 4; i++) await limiter.consume('a');
    await world.home.stop();
    // Then it is denied, or refused where the home had said that nothing is left.
    let taken = 0;
    while ((await limiter.consume('a').catch(() => undefined))?.allowed === true) taken++;
    expect(taken).toBeLessThanOrEqual(4);
  });

  it('gets nothing of a home that lost its counts, until operators accept that', async () => {
    const us = await start();
    const limiter = us.limiters.for('denied');
    const isAllowed = async () => (await limiter.consume('a').catch(() => undefined))?.allowed;
    expect(await isAllowed()).toBe(true);
    await world.home.stop();
    await world.home.start();
    await until(async () => (await isAllowed()) === false);
    // Until the home has heard the region, it only says that it does not know.
    await until(async () => (await limiter.consume('a')).retryAfterMs > 3_000_000);
    await world.closeApps();
    const [region, home] = [new Redis(world.serverOf('us').url), new Redis(world.home.url)];
    await region.del(`${prefix}:home:us`);
    await home.del(`${prefix}:world:regions`);
    region.disconnect();
    home.disconnect();
    const anew = (await start()).limiters.for('denied');
    await until(async () => (await anew.consume('a').catch(() => undefined))?.allowed === true);
  });

  it('rejects what only the home can do', async () => {
    const us = await start();
    const limiter = us.limiters.for('local');
    await limiter.consume('a');
    await world.home.stop();
    await expect(limiter.block('a', '1m')).rejects.toThrow(RateLimitStoreError);
    await expect(limiter.reset('a')).rejects.toThrow(RateLimitStoreError);
    await expect(us.limiters.setRate('local', { rate: 9 })).rejects.toThrow(RateLimitStoreError);
    // Refunds and penalties are the region's, and reach the home later.
    await expect(limiter.refund('a', 1)).resolves.toBeUndefined();
    await expect(limiter.penalize('a', 1)).resolves.toBeUndefined();
  });

  it('refuses nothing in shadow mode', async () => {
    await world.home.stop();
    const us = await start();
    expect(await us.limiters.for('quiet').consume('a')).toMatchObject({ allowed: true, source: 'fallback' });
  });
});
