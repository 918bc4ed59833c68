import type { AddressInfo } from 'node:net';
import type { Server } from 'node:http';
import {
  type CanActivate,
  Controller,
  Get,
  type INestApplication,
  type INestApplicationContext,
  Injectable,
  Param,
  type Type,
} from '@nestjs/common';
import type { ExecutionContext, ModuleMetadata } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import {
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../lib/index.js';
import type { Overview, Range } from '../../lib/console/api.js';
import { type RateLimitConsoleOptions, RateLimitConsoleModule } from '../../lib/console/index.js';
import { RateLimitConsole } from '../../lib/console/rate-limit-console.js';
import { ConsoleClock } from '../../lib/console/telemetry/console-redis.js';
import { Folder } from '../../lib/console/telemetry/recorder.js';
import { waitLonger } from '../storage/features/regions/world.js';
import { patient } from '../support/redis/patience.mjs';

/** What the console answers. */
export type * from '../../lib/console/api.js';
/** How many requests an address may send to the console. */
export { CONSOLE_LIMIT } from '../../lib/console/limit-catalog.js';

/** The parts of an app's console. */
export function consoleOf(app: INestApplicationContext): RateLimitConsole {
  return app.get(RateLimitConsole, { strict: false });
}

interface WithHeaders {
  headers: Record<string, string | undefined>;
}

function headerOf(context: ExecutionContext, name: string): string | undefined {
  return context.switchToHttp().getRequest<WithHeaders>().headers[name];
}

/** Lets those in who say that they are operators. */
@Injectable()
export class OpsGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return headerOf(context, 'x-user') !== undefined;
  }
}

/** Lets administrators change something. */
@Injectable()
export class AdminGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return headerOf(context, 'x-user') === 'admin';
  }
}

export const byHeader = (context: ExecutionContext) => headerOf(context, 'x-client');

@Controller('things')
export class ThingsController {
  @Get()
  @RateLimit('things')
  list() {
    return 'things';
  }

  @Get(':id')
  @RateLimit({ algo: 'sliding-window', rate: 3, interval: '1h', key: byHeader })
  one(@Param('id') id: string) {
    return id;
  }
}

export const THINGS = { algo: 'gcra', rate: 10, interval: '1h', key: byHeader } as const satisfies LimitDefinition;
export const WHO_MAY = { guards: [OpsGuard], write: [AdminGuard] };
export const PAGE = { 'x-rate-limit-console': '1', 'content-type': 'application/json' };

export interface ConsoleAppOptions {
  readonly limits?: RateLimitModuleOptions;
  readonly console?: Partial<RateLimitConsoleOptions>;
  readonly fastify?: boolean;
  /** Another HTTP adapter. */
  readonly adapter?: AbstractHttpAdapter;
  readonly metadata?: ModuleMetadata;
  readonly controllers?: Type[];
  readonly setUp?: (app: INestApplication) => unknown;
  readonly bodyParser?: boolean;
  /** @default a free one */
  readonly port?: number;
}

/** An app with limits and a console, on a port of its own. */
export class ConsoleApp {
  private constructor(
    readonly nest: INestApplication,
    readonly url: string,
  ) {}

  static async start(options: ConsoleAppOptions = {}): Promise<ConsoleApp> {
    const { limits = {}, fastify = false, metadata = {}, setUp, bodyParser = true, port: wanted = 0 } = options;
    const moduleOptions = patient({ define: { things: THINGS }, ...limits });
    const builder = Test.createTestingModule({
      ...metadata,
      controllers: options.controllers ?? [ThingsController],
      imports: [
        RateLimitModule.forRoot(moduleOptions),
        RateLimitConsoleModule.forRoot({ ...WHO_MAY, path: 'ops/limits', ...options.console }),
        ...(metadata.imports ?? []),
      ],
    });
    const testing = await (limits.regions === undefined ? builder : waitLonger(builder, moduleOptions)).compile();
    testing.useLogger(process.env['SHOW'] ? ['error'] : false);
    const { adapter = fastify ? new FastifyAdapter() : undefined } = options;
    const app =
      adapter === undefined
        ? testing.createNestApplication({ bodyParser })
        : testing.createNestApplication(adapter, { bodyParser });
    await setUp?.(app);
    await app.listen(wanted, '127.0.0.1');
    const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
    return new ConsoleApp(app, `http://127.0.0.1:${port}`);
  }

  get console(): RateLimitConsole {
    return consoleOf(this.nest);
  }

  /** What the console shows, without a request: those are limited, and tests ask often. */
  overview(range: Range = '5m'): Promise<Overview> {
    return this.console.overviews.overview(range);
  }

  /** Adds up what instances have left that ended, as this one does from time to time; so much later than now. */
  fold(laterMs = 0): Promise<number> {
    const clock = Object.assign(new ConsoleClock(), { now: () => this.console.clock.now() + laterMs });
    return new Folder(this.console.redis!, clock, 5000).turn('nobody');
  }

  get service(): LimiterService {
    return this.nest.get(LimiterService, { strict: false });
  }

  /** A request of the page, as an operator. */
  get(path: string, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${this.url}/${path}`, { headers: { 'x-user': 'ops', ...headers } });
  }

  async read<T>(path: string, headers: Record<string, string> = {}): Promise<T> {
    const response = await this.get(`ops/limits/api/${path}`, headers);
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }

  /** A change of the page, as an administrator. */
  post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const all = { 'x-user': 'admin', ...PAGE, ...headers };
    return fetch(`${this.url}/ops/limits/api/${path}`, { method: 'POST', headers: all, body: text });
  }

  async change<T>(path: string, body: unknown): Promise<T> {
    const response = await this.post(path, { reason: 'a test', ...(body as object) });
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }

  async close(): Promise<void> {
    // A browser opens connections before it needs them, and a server waits for a minute for their first request.
    const server = this.nest.getHttpServer() as Server;
    const timer = setInterval(() => server.closeAllConnections(), 50);
    await this.nest.close().finally(() => clearInterval(timer));
  }
}
