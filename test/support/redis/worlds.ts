import type { INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  type AlgorithmOptions,
  type Decision,
  type Limiter,
  LimiterService,
  type LimitDefinition,
  RateLimitModule,
  RateLimitStoreError,
} from '../../../lib/index.js';
import { waitLonger } from '../../storage/features/regions/world.js';
import { OwnTime } from '../time/own-time.mjs';
import { type RedisServer, startRedis } from './redis-servers.js';
import { freshPrefix } from '../limits/stores.js';
import { TcpProxy } from './tcp-proxy.js';
import type { Use } from '../limits/uses.js';

/** How long a packet takes between a region and the home, in milliseconds. */
export const DELAY_MS = 40;
/** How long a request may wait. */
export const TIMEOUT_MS = 250;
/** The key that all ask for. */
export const KEY = 'user:1';
const HOME_REGION = 'eu';
const REGIONS = [HOME_REGION, 'us', 'ap'];
/** How often requests are made, in milliseconds, and how many of a region at once. */
const EVERY_MS = 10;
const MOST_AT_ONCE = 200;

export interface Region {
  readonly name: string;
  /** The Redis of the region. In the region of the home it is the home. */
  readonly server: RedisServer;
  /** What stands before the home, for this region. */
  readonly proxy: TcpProxy;
  /** How the app reaches the Redis of the region. */
  readonly url: string;
  readonly app: INestApplicationContext;
  readonly limiters: LimiterService;
}

export interface WorldOptions {
  /** The limits of each region, by name. They count over all regions. */
  readonly limits: Readonly<Record<string, AlgorithmOptions>>;
  readonly delayMs?: number;
  /** True if requests wait longer than `TIMEOUT_MS`, so that a busy machine makes none of them fail. */
  readonly isPatient?: boolean;
}

/** Three regions: one at the home, two behind proxies that take their time. */
export class World {
  readonly regions: Region[] = [];
  private readonly cleanups: (() => unknown)[] = [];

  private constructor(
    readonly home: RedisServer,
    private readonly prefix: string,
    private readonly options: WorldOptions,
  ) {}

  static async start(options: WorldOptions): Promise<World> {
    const home = await startRedis();
    const world = new World(home, freshPrefix(), options);
    world.cleanups.push(() => home.stop());
    try {
      for (const name of REGIONS) world.regions.push(await world.startRegion(name));
    } catch (error) {
      await world.stop();
      throw error;
    }
    return world;
  }

  /** Another instance of a region that exists. */
  startApp(url: string, home: string, name: string): Promise<INestApplicationContext> {
    return startApp(url, { name, home }, this.prefix, this.options);
  }

  /** Makes requests in all regions, for one key of a limit. */
  demand(perSecond: readonly number[], name = Object.keys(this.options.limits)[0]!): Demand {
    return new Demand(
      this.regions.map(({ limiters }) => limiters.for(name)),
      perSecond,
    );
  }

  async stop(): Promise<void> {
    for (const cleanup of this.cleanups.toReversed()) await cleanup();
  }

  private async startRegion(name: string): Promise<Region> {
    const { home, cleanups, options } = this;
    const isHome = name === HOME_REGION;
    const server = isHome ? home : await startRedis();
    if (!isHome) cleanups.push(() => server.stop());
    const proxy = await TcpProxy.start(home, 0, isHome ? 0 : (options.delayMs ?? DELAY_MS));
    cleanups.push(() => proxy.close());
    const url = isHome ? proxy.url : server.url;
    const app = await this.startApp(url, proxy.url, name);
    cleanups.push(() => app.close());
    return { name, server, proxy, url, app, limiters: app.get(LimiterService) };
  }
}

async function startApp(
  redis: string,
  regions: { name: string; home: string },
  prefix: string,
  { limits, isPatient = false }: WorldOptions,
): Promise<INestApplicationContext> {
  const ofWorld = Object.entries(limits).map(([name, limit]) => [name, { ...limit, scope: 'world' }]);
  const define = Object.fromEntries(ofWorld) as Record<string, LimitDefinition>;
  const options = { redis, regions, prefix, define, timeout: TIMEOUT_MS };
  const builder = Test.createTestingModule({ imports: [RateLimitModule.forRoot(options)] });
  const module = await (isPatient ? waitLonger(builder, options) : builder).compile();
  await module.init();
  return module;
}

/** Milliseconds since the epoch, and parts of them. */
function now(): number {
  return performance.timeOrigin + performance.now();
}

/** One request, as it was answered. Times are milliseconds. */
export interface Answer {
  readonly region: number;
  readonly at: number;
  /** In the time that this process had. */
  readonly tookMs: number;
  /** `undefined` if the limit could not be asked. */
  readonly allowed: boolean | undefined;
  /** Why it could not. */
  readonly error?: string;
}

/** Requests of all regions, each at its own rate, for one key. */
export class Demand {
  readonly answers: Answer[] = [];
  /** Units that were allowed in all regions together. */
  readonly uses: Use[] = [];
  private readonly due: number[];
  private readonly open = new Set<Promise<void>>();
  private readonly timer: NodeJS.Timeout;
  private readonly time = new OwnTime();
  private last = now();
  private failure: unknown;

  constructor(
    private readonly limiters: readonly Pick<Limiter, 'consume'>[],
    /** Requests a second in each region. May be changed. */
    public perSecond: readonly number[],
    private readonly key = KEY,
  ) {
    this.due = limiters.map(() => 0);
    this.timer = setInterval(() => this.tick(), EVERY_MS);
  }

  /** Ends it. All of its requests have been answered then. */
  async end(): Promise<this> {
    clearInterval(this.timer);
    await Promise.all(this.open);
    this.time.stop();
    if (this.failure !== undefined) throw this.failure;
    return this;
  }

  /** Allowed units in a stretch of time, of one region or of all. */
  allowed(from = -Infinity, to = Infinity, region?: number): number {
    return this.answers.filter(
      (each) =>
        each.allowed === true && each.at >= from && each.at < to && (region === undefined || each.region === region),
    ).length;
  }

  private tick(): void {
    const at = now();
    const seconds = (at - this.last) / 1000;
    this.last = at;
    for (const [region, limiter] of this.limiters.entries()) {
      this.due[region] = Math.min(MOST_AT_ONCE, this.due[region]! + this.perSecond[region]! * seconds);
      for (; this.due[region] >= 1; this.due[region]--) this.request(region, limiter);
    }
  }

  private request(region: number, limiter: Pick<Limiter, 'consume'>): void {
    const at = now();
    const start = this.time.now();
    const took = () => this.time.now() - start;
    const answered = limiter
      .consume(this.key)
      .then(
        ({ allowed }: Pick<Decision, 'allowed'>) => this.answered({ region, at, allowed, tookMs: took() }),
        (error: unknown) => {
          if (!(error instanceof RateLimitStoreError)) this.failure ??= error;
          this.answered({ region, at, allowed: undefined, tookMs: took(), error: (error as Error).message });
        },
      )
      .finally(() => this.open.delete(answered));
    this.open.add(answered);
  }

  private answered(answer: Answer): void {
    this.answers.push(answer);
    if (answer.allowed === true) this.uses.push([answer.at, now()]);
  }
}
