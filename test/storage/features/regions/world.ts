import type { Server } from 'node:http';
import { jest } from '@jest/globals';
import type { DynamicModule, INestApplication, LoggerService, Type } from '@nestjs/common';
import { Test, type TestingModuleBuilder } from '@nestjs/testing';
import { readSettings } from '../../../../lib/app/config/settings.js';
import { RATE_LIMIT_SETTINGS } from '../../../../lib/app/config/tokens.js';
import { LimiterService, RateLimitModule, type RateLimitModuleOptions } from '../../../../lib/index.js';
import { Waits } from '../../../../lib/storage/features/regions/home-clock.js';
import { type RedisServer, startRedis } from '../../../support/redis/redis-servers.js';

/** How long servers may take, in milliseconds: more than the module allows, so that a busy machine is taken for no outage. */
const TIMEOUT_MS = 3000;

export type RegionName = 'eu' | 'us';

/** What an app in a region is made of, besides its servers. */
export interface RegionApp {
  readonly limits: RateLimitModuleOptions;
  readonly controllers?: Type[];
  readonly imports?: (Type | DynamicModule)[];
  readonly logger?: LoggerService;
}

/** An app in one of the regions. */
export class AppInRegion {
  constructor(
    readonly nest: INestApplication,
    readonly url: string,
  ) {}

  get limiters(): LimiterService {
    return this.nest.get(LimiterService);
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(this.url + path, { headers });
  }

  /** The statuses of so many requests, one after the other. */
  async statuses(count: number, path: string): Promise<number[]> {
    const statuses: number[] = [];
    for (let request = 0; request < count; request++) statuses.push((await this.get(path)).status);
    return statuses;
  }
}

/** An app in a region that waits longer for servers than the module allows. */
export function patientApp(
  options: RateLimitModuleOptions,
  controllers: Type[] = [],
  imports: (Type | DynamicModule)[] = [],
): TestingModuleBuilder {
  const imported = [RateLimitModule.forRoot(options), ...imports];
  return waitLonger(Test.createTestingModule({ imports: imported, controllers }), options);
}

/** Makes an app in a region, with these options, wait longer for servers than the module allows. */
export function waitLonger(app: TestingModuleBuilder, options: RateLimitModuleOptions): TestingModuleBuilder {
  jest.spyOn(Waits.prototype, 'areSuspicious', 'get').mockReturnValue(false);
  return app
    .overrideProvider(RATE_LIMIT_SETTINGS)
    .useFactory({ factory: () => ({ ...readSettings(options), timeoutMs: TIMEOUT_MS }) });
}

/** Two regions with a Redis each, and the Redis that counts for both. */
export class World {
  readonly apps: AppInRegion[] = [];

  private constructor(
    readonly home: RedisServer,
    private readonly servers: Readonly<Record<RegionName, RedisServer>>,
  ) {}

  static async start(): Promise<World> {
    const [home, eu, us] = await Promise.all([startRedis(), startRedis(), startRedis()]);
    return new World(home, { eu: eu, us: us });
  }

  serverOf(region: RegionName): RedisServer {
    return this.servers[region];
  }

  /** Starts an app, which listens. */
  async app(region: RegionName, { limits, controllers = [], imports = [], logger }: RegionApp): Promise<AppInRegion> {
    const regions = { name: region, home: this.home.url };
    const options: RateLimitModuleOptions = { redis: this.servers[region].url, regions, ...limits };
    const testing = await patientApp(options, controllers, imports).compile();
    testing.useLogger(logger ?? false);
    const nest = testing.createNestApplication();
    await nest.listen(0, '127.0.0.1');
    const app = new AppInRegion(nest, await nest.getUrl());
    this.apps.push(app);
    return app;
  }

  /** Ends all apps. */
  async closeApps(): Promise<void> {
    for (const { nest } of this.apps.splice(0)) {
      (nest.getHttpServer() as Server).closeAllConnections();
      await nest.close();
    }
  }

  async stop(): Promise<void> {
    await this.closeApps();
    await Promise.all([this.home, ...Object.values(this.servers)].map((server) => server.stop()));
  }
}
