import type { ServerResponse } from 'node:http';
import type { Server } from 'node:http';
import type { INestApplication, ModuleMetadata, Type } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import {
  type MemoryStore,
  RateLimitModule,
  type RateLimitModuleExtras,
  type RateLimitModuleOptions,
} from '../../lib/index.js';
import { RATE_LIMIT_RANDOM } from '../../lib/app/config/tokens.js';
import { createTestingStore } from '../../lib/testing/index.js';
import { PlainAdapter } from '../support/http/plain-adapter.js';
import { ManualClock } from '../support/limits/stores.js';
import { patient } from '../support/redis/patience.mjs';
import { variants } from '../support/tier.js';

export type Framework = 'express' | 'fastify' | 'plain';
/** Both frameworks, for the few specs that `npm test` runs on both. */
export const everyFramework: readonly Framework[] = ['express', 'fastify'];
export const frameworks = variants(everyFramework);
/** All HTTP adapters, with one that isn't part of Nest. */
export const everyAdapter: readonly Framework[] = [...everyFramework, 'plain'];
export const adapters = variants(everyAdapter);
/** Every adapter with every store. */
export const everyAppKind: readonly (readonly [Framework, string])[] = [
  ['express', 'RedisStore'],
  ['fastify', 'MemoryStore'],
  ['express', 'MemoryStore'],
  ['fastify', 'RedisStore'],
  ['plain', 'MemoryStore'],
  ['plain', 'RedisStore'],
];
/** `npm test` runs two frameworks once, and each store once. */
export const appKinds = variants(everyAppKind, 2);

export interface AppOptions extends ModuleMetadata {
  limits?: RateLimitModuleOptions & RateLimitModuleExtras;
  /** Whether the framework believes X-Forwarded-For, or of whom, or of how many. */
  trustProxy?: boolean | number | ((address: string | undefined) => boolean);
  /** Draws the random numbers of the app. */
  random?: () => number;
  configure?: (app: INestApplication) => void;
}

/** An app that listens, on a clock that tests move. */
export class HttpApp {
  private constructor(
    readonly nest: INestApplication,
    readonly url: string,
    readonly clock: ManualClock,
    readonly store: MemoryStore,
  ) {}

  static async start(framework: Framework, options: AppOptions): Promise<HttpApp> {
    const { limits = {}, trustProxy = false, random = Math.random, configure, imports = [], ...metadata } = options;
    const clock = new ManualClock();
    const store = createTestingStore({ clock });
    const testing = await Test.createTestingModule({
      ...metadata,
      imports: [RateLimitModule.forRoot(patient({ store, ...limits })), ...imports],
    })
      .overrideProvider(RATE_LIMIT_RANDOM)
      .useValue(random)
      .compile();
    testing.useLogger(false);
    let nest: INestApplication;
    if (framework === 'fastify') {
      nest = testing.createNestApplication<NestFastifyApplication>(
        new FastifyAdapter({ trustProxy: trustProxy as boolean }),
      );
    } else if (framework === 'plain') {
      nest = testing.createNestApplication(new PlainAdapter({ trustProxy: trustProxy === true }));
    } else {
      const app = testing.createNestApplication<NestExpressApplication>();
      if (trustProxy !== false) app.set('trust proxy', trustProxy);
      nest = app;
    }
    configure?.(nest);
    await nest.listen(0, '127.0.0.1');
    return new HttpApp(nest, await nest.getUrl(), clock, store);
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(this.url + path, { headers });
  }

  /** The statuses of so many requests, one after the other. */
  async statuses(count: number, path: string, headers?: Record<string, string>): Promise<number[]> {
    const statuses: number[] = [];
    for (let request = 0; request < count; request++) statuses.push((await this.get(path, headers)).status);
    return statuses;
  }

  async close(): Promise<void> {
    // The client keeps connections for later, and the server would wait for them.
    (this.nest.getHttpServer() as Server).closeAllConnections();
    await this.nest.close();
    await this.store.close();
  }
}

/** Compiles an app and starts it up without listening; for what has to fail. */
export async function startUp(
  limits: RateLimitModuleOptions,
  controllers: Type[] = [],
  metadata: ModuleMetadata = {},
): Promise<void> {
  const testing = await Test.createTestingModule({
    ...metadata,
    controllers,
    imports: [RateLimitModule.forRoot(limits), ...(metadata.imports ?? [])],
  }).compile();
  testing.useLogger(false);
  const app = testing.createNestApplication();
  try {
    await app.init();
  } finally {
    await app.close();
  }
}

/** Node's own response, which those of some adapters hold. */
export function nodeResponse(response: object): ServerResponse {
  return ('raw' in response ? response.raw : response) as ServerResponse;
}

/** Answers with a text in the framework's own way; with Node's if its responses have none. */
export function sendText(response: object, text: string, status?: number): void {
  const { send } = response as { readonly send?: unknown };
  const node = nodeResponse(response);
  if (typeof send !== 'function') {
    node.statusCode = status ?? node.statusCode;
    node.end(text);
    return;
  }
  const own = response as { status: (code: number) => unknown; send: (text: string) => unknown };
  if (status !== undefined) own.status(status);
  own.send(text);
}
