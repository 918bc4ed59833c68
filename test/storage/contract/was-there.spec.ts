import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  type LimitDefinition,
  LimiterService,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../../lib/index.js';
import { freshPrefix } from '../../support/limits/stores.js';

const HOUR = { rate: 5, interval: '1h' } as const;
const define = {
  plain: { algo: 'gcra', ...HOUR },
  window: { algo: 'sliding-window', ...HOUR, blockFor: ['1h', '2h'] as string[] },
  log: { algo: 'sliding-log', ...HOUR },
  slots: { algo: 'concurrency', limit: 2, ttl: '1m' },
} as const satisfies Record<string, LimitDefinition>;

describe.each<[string, () => RateLimitModuleOptions]>([
  ['in process', () => ({})],
  ['on Redis', () => ({ redis: process.env['TEST_REDIS_URL']!, prefix: freshPrefix() })],
])('%s,', (_, options) => {
  let app: TestingModule;
  let service: LimiterService;

  beforeAll(async () => {
    app = await Test.createTestingModule({ imports: [RateLimitModule.forRoot({ define, ...options() })] }).compile();
    await app.init();
    service = app.get(LimiterService);
  });
  afterAll(() => app.close());

  it.each(['plain', 'window', 'log'] as const)(
    'unblock and reset of %s say whether anything was there',
    async (name) => {
      const limiter = service.for(name);
      expect([await limiter.unblock('ann'), await limiter.reset('ann')]).toEqual([false, false]);
      await limiter.consume('ann');
      expect(await limiter.unblock('ann')).toBe(false);
      await limiter.block('ann', '1h');
      expect([await limiter.unblock('ann'), await limiter.unblock('ann')]).toEqual([true, false]);
      expect([await limiter.reset('ann'), await limiter.reset('ann')]).toEqual([true, false]);
      await limiter.block('ann', '1h');
      expect([await limiter.reset('ann'), await limiter.reset('ann')]).toEqual([true, false]);
      // A misspelled key, and one that looks like a pattern.
      await limiter.block('ann@x.com|203.0.113.7', '1h');
      expect([await limiter.unblock('ann@x.com'), await limiter.unblock('ann@x.com|*')]).toEqual([false, false]);
      expect(await limiter.unblock('ann@x.com|203.0.113.7')).toBe(true);
    },
  );

  it('a block that the limit began is there, too', async () => {
    const limiter = service.for('window');
    for (let call = 0; call < 6; call++) await limiter.consume('bert');
    expect([await limiter.unblock('bert'), await limiter.unblock('bert')]).toEqual([true, false]);
  });

  it('so are slots', async () => {
    const limiter = service.for('slots');
    expect(await limiter.reset('ann')).toBe(false);
    await limiter.acquire('ann');
    expect([await limiter.reset('ann'), await limiter.reset('ann')]).toEqual([true, false]);
    await limiter.block('ann', '1h');
    expect([await limiter.unblock('ann'), await limiter.unblock('ann')]).toEqual([true, false]);
  });
});

it('a store that does not say it may have had something', async () => {
  const app = await Test.createTestingModule({ imports: [RateLimitModule.forRoot({ define })] }).compile();
  await app.init();
  const limiter = app.get(LimiterService).for('plain');
  const { store } = limiter as unknown as { store: { block(): Promise<void>; reset(): Promise<void> } };
  jest.spyOn(store, 'block').mockResolvedValue();
  jest.spyOn(store, 'reset').mockResolvedValue();
  expect([await limiter.unblock('ann'), await limiter.reset('ann')]).toEqual([true, true]);
  jest.restoreAllMocks();
  await app.close();
});
