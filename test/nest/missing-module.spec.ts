/**
 * Whether a module was set up is known for all of a process. This spec needs one in which none was:
 * @library own
 */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { MemoryStore, RateLimit, RateLimitModule, type RateLimitModuleOptions } from '../../lib/index.js';

let warned: string[];
beforeEach(() => {
  warned = [];
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((text: unknown) => void warned.push(String(text)));
});
afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

function declareLimits(): void {
  class Routes {
    @RateLimit({ algo: 'gcra', rate: 1, interval: '1s' })
    list() {}
  }
  expect(Routes.name).toBe('Routes');
}

describe('limits that are declared', () => {
  it('without a module are reported once', () => {
    jest.useFakeTimers();
    declareLimits();
    declareLimits();
    jest.advanceTimersByTime(9_999);
    expect(warned).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(warned).toEqual([expect.stringMatching(/^limits are declared by @RateLimit, but nothing checks them/)]);
    declareLimits();
    jest.advanceTimersByTime(60_000);
    expect(warned).toHaveLength(1);
  });

  it('with one are not', () => {
    jest.useFakeTimers();
    RateLimitModule.forRoot();
    declareLimits();
    jest.advanceTimersByTime(60_000);
    expect(warned).toEqual([]);
  });
});

async function start(options: RateLimitModuleOptions, isAsync: boolean): Promise<void> {
  const module = isAsync
    ? RateLimitModule.forRootAsync({ useFactory: () => options })
    : RateLimitModule.forRoot(options);
  const app = await Test.createTestingModule({ imports: [module] }).compile();
  await app.init();
  await app.close();
}

describe('the option redis', () => {
  it.each([false, true])('as a variable that is not set is reported in one line, forRootAsync: %p', async (isAsync) => {
    await start({ redis: undefined }, isAsync);
    expect(warned).toEqual([
      "option 'redis' is undefined, so each instance counts limits in its own memory. If this is intended, omit the option",
    ]);
  });

  it('that is left out is not, nor beside a store', async () => {
    await start({}, false);
    const store = new MemoryStore();
    await start({ redis: undefined, store }, true);
    await store.close();
    expect(warned).toEqual([]);
  });
});
