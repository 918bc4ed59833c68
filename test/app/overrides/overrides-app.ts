import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, jest } from '@jest/globals';
import { Logger, type ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  type LimitDefinition,
  LimiterService,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../../lib/index.js';
import { patient } from '../../support/redis/patience.mjs';

export const login: LimitDefinition = { algo: 'gcra', rate: 10, interval: '1h' };
export const hourly: LimitDefinition = { name: 'hourly', algo: 'sliding-window', rate: 100, interval: '1h' };

/** One instance of an app: with a defined limit, one of the module's that has a name, and one that has none. */
export class RatesApp {
  private constructor(
    readonly nest: TestingModule,
    readonly service: LimiterService,
  ) {}

  static async start(options: RateLimitModuleOptions = {}, metadata: ModuleMetadata = {}): Promise<RatesApp> {
    const limits = [hourly, { algo: 'gcra', rate: 7, interval: '1s' } as const];
    const module = RateLimitModule.forRoot(patient({ define: { login }, limits, ...options }));
    const nest = await Test.createTestingModule({
      ...metadata,
      imports: [module, ...(metadata.imports ?? [])],
    }).compile();
    await nest.init();
    return new RatesApp(nest, nest.get(LimiterService));
  }

  /** The quota by which this instance decides now. */
  async quota(name = 'login', key = 'user:1'): Promise<number> {
    return (await this.service.for(name).peek(key)).quota;
  }

  /** What is left for a key that has used so much. */
  async remaining(key = 'user:1', name = 'login'): Promise<number> {
    return (await this.service.for(name).peek(key)).remaining;
  }

  close(): Promise<void> {
    return this.nest.close();
  }
}

/** A stored record, with the fields that a test sets. */
export const recordOf = (fields: object) =>
  JSON.stringify({
    patch: null,
    version: 1,
    generation: 0,
    inherit: 'keep',
    expiresAt: null,
    quota: 10,
    previousQuota: 10,
    ...fields,
  });

/** Starts an app for each test, whose warnings are not shown. */
export function startForEach(options: () => RateLimitModuleOptions, use: (app: RatesApp) => void): void {
  let app: RatesApp;
  beforeEach(async () => {
    jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    use((app = await RatesApp.start(options())));
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await app.close();
  });
}

const setTimer = globalThis.setTimeout;
/** The time between reads without a message. */
export const READ_EVERY_MS = 30_000;

/** Starts all timers but those after which the rates are read in any case. */
export function exceptReadings(callback: () => void, ms = 0, ...args: []): NodeJS.Timeout {
  return ms === READ_EVERY_MS ? setTimer(() => undefined).unref() : setTimer(callback, ms, ...args);
}

/** Waits until a question has an answer, and returns how many milliseconds that took. */
export async function until<T>(ask: () => Promise<T>, wanted: T, patienceMs = 240_000): Promise<number> {
  const from = performance.now();
  for (;;) {
    const got = await ask();
    const passed = performance.now() - from;
    if (got === wanted) return passed;
    if (passed > patienceMs)
      throw new Error(`expected ${String(wanted)}, received ${String(got)} for ${patienceMs} ms`);
    await sleep(1);
  }
}
