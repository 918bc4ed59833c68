import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import Module from 'node:module';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  Get,
  type HttpException,
  type INestApplication,
  Inject,
  type Type,
} from '@nestjs/common';
import { APP_FILTER, LazyModuleLoader } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { Test, type TestingModule } from '@nestjs/testing';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { Redis } from 'ioredis';
import {
  type LimitDefinition,
  LimiterService,
  type LimitSpec,
  RateLimit,
  type RateLimitErrorCode,
  RateLimitGuard,
  RateLimitModule,
} from '../../lib/index.js';
import { paced } from '../../lib/integrations/client/index.js';
import { RateLimitGraphqlModule } from '../../lib/integrations/graphql/index.js';
import { OutboundLimiter } from '../../lib/integrations/outbound/index.js';
import { rateLimitSockets } from '../../lib/integrations/sockets/index.js';
import { startUp } from '../e2e/http-app.js';
import { freshPrefix, SENDS_ONCE } from '../support/limits/stores.js';
import { anotherCopy } from '../support/nest/another-copy.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';
import { freePort } from '../support/processes/ports.mjs';
import { patient } from '../support/redis/patience.mjs';
import { until } from '../support/time/until.js';
import { type RedisServer, startRedis } from '../support/redis/redis-servers.js';

/** The page `docs/reference/errors.md` has a section for each code, with a message that the library gives. */
const page = readFileSync(join(PACKAGE_FOLDER, 'docs/reference/errors.md'), 'utf8');

const minute = { algo: 'fixed-window', rate: 3, interval: '1m' } as const;
const define: Record<string, LimitDefinition> = { email: minute, slots: { algo: 'concurrency', limit: 1, ttl: '1m' } };

let opened: { close: () => Promise<void> }[] = [];
let server: RedisServer;
let admin: Redis;

/** Returns the error that a call throws or rejects with. */
async function thrownBy(call: () => unknown): Promise<unknown> {
  try {
    await call();
  } catch (error) {
    return error;
  }
  return undefined;
}

const started = (options: object, controllers: Type[] = []) => thrownBy(() => startUp(options, controllers));
const startedWith = (...limits: object[]) => started({ limits });

async function app(options: object = {}): Promise<TestingModule> {
  const module = await Test.createTestingModule({
    imports: [RateLimitModule.forRoot(patient({ define, onStoreError: 'deny', ...options }))],
  }).compile();
  module.useLogger(false);
  await module.init();
  opened.push(module);
  return module;
}

const limiters = async (options?: object): Promise<LimiterService> => (await app(options)).get(LimiterService);

/** Starts an app that connects to Redis as a user, and returns its limiters. */
const onRedis = async (user: string, options: object = {}): Promise<LimiterService> => {
  const redis = server.url.replace('redis://', `redis://${user}`);
  return limiters({ redis, prefix: freshPrefix(), ...options });
};
const consumed = (service: LimiterService, limit = 'email') => thrownBy(() => service.for(limit).consume('user:1'));

/** Returns the error that rejects a request of an app. */
async function refusedBy(options: object, controllers: Type[], requests = 1): Promise<unknown> {
  let seen: unknown;
  @Catch()
  class Seeing implements ExceptionFilter {
    catch(error: unknown, host: ArgumentsHost): void {
      seen = error;
      host.switchToHttp().getResponse<ServerResponse>().end();
    }
  }
  const module = await Test.createTestingModule({
    imports: [RateLimitModule.forRoot(options)],
    controllers,
    providers: [{ provide: APP_FILTER, useClass: Seeing }],
  }).compile();
  module.useLogger(false);
  const nest: INestApplication = module.createNestApplication();
  opened.push(nest);
  await nest.listen(0, '127.0.0.1');
  const url = await nest.getUrl();
  for (let request = 0; request < requests; request++) await fetch(url, { headers: { connection: 'close' } });
  return seen;
}

function controllerWith(...limits: LimitSpec[]): Type {
  @Controller()
  class ReportsController {
    @Get()
    @RateLimit(...(limits as [LimitSpec, ...LimitSpec[]]))
    list(): string {
      return 'ok';
    }
  }
  return ReportsController;
}

/** Starts an app while a package isn't installed. */
async function without(name: string, start: () => Promise<unknown>): Promise<unknown> {
  type Load = (request: string, ...rest: unknown[]) => unknown;
  const loader = Module as unknown as Record<'_load', Load>;
  const load = loader['_load'];
  loader['_load'] = (request, ...rest) => {
    if (request === name) throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' });
    return load(request, ...rest);
  };
  try {
    return await start();
  } finally {
    loader['_load'] = load;
  }
}

/** How to get an error with each code. TypeScript requires a row for each code of the type. */
const ERRORS: Record<RateLimitErrorCode, () => Promise<unknown>> = {
  SLUICE_INVALID_OPTION: () => startedWith({ ...minute, rate: 0 }),
  SLUICE_UNKNOWN_OPTION: () => startedWith({ algo: 'gcra', rate: 10, interval: '1s', brust: 20 }),
  SLUICE_MISPLACED_OPTION: () => startedWith({ ...minute, maxKeys: 100 }),
  SLUICE_MISSING_OPTION: () => startedWith({ algo: 'gcra', rate: 10 }),
  SLUICE_EXCLUDED_OPTIONS: () => startedWith({ ...minute, blockFor: '1h', countRefused: true }),
  SLUICE_UNSUPPORTED_OPTION: () => startedWith({ algo: 'sliding-window', rate: 10, interval: '1s', burst: 20 }),
  SLUICE_UNCHANGEABLE_OPTION: async () => {
    const service = await limiters();
    return thrownBy(() => service.setRate('email', { algo: 'gcra' } as never));
  },
  SLUICE_INVALID_DURATION: () => startedWith({ ...minute, interval: '10x' }),
  SLUICE_INVALID_POLICY: () => started({ policy: { source: () => ({ limits: { api: { ...minute, rate: -1 } } }) } }),
  SLUICE_INVALID_REDIS: () => started({ redis: 'localhost:6379' }),
  SLUICE_INVALID_LIMIT: () => startedWith(42 as never),
  SLUICE_UNKNOWN_ALGORITHM: () => startedWith({ ...minute, algo: 'fixed-windows' }),
  SLUICE_UNKNOWN_LIMIT: async () => {
    const service = await limiters();
    return thrownBy(() => service.for('emial'));
  },
  SLUICE_DUPLICATE_LIMIT: () => startedWith({ ...minute, name: 'api' }, { ...minute, rate: 5, name: 'api' }),
  SLUICE_UNSUPPORTED_LIMIT: async () => {
    const nest = (await app()).createNestApplication();
    return thrownBy(() => rateLimitSockets(nest, new IoAdapter(nest), { handshakes: define['slots']! }));
  },
  SLUICE_INVALID_WITHIN: () =>
    started({ define: { user: { ...minute, within: 'tenant' }, tenant: { ...minute, within: 'user' } } }),
  SLUICE_INEXACT_RATE: () => startedWith({ algo: 'gcra', rate: 999_999_999_989, interval: '1y' }),
  SLUICE_NO_MODULE: async () => {
    const nest = (await Test.createTestingModule({}).compile()).createNestApplication();
    opened.push(nest);
    return thrownBy(() => rateLimitSockets(nest, new IoAdapter(nest), { handshakes: minute }));
  },
  SLUICE_DUPLICATE_MODULE: () =>
    thrownBy(() => startUp({}, [], { imports: [RateLimitModule.forRoot({ limits: [minute] })] })),
  SLUICE_LAZY_MODULE: async () => {
    const loader = (await app()).get(LazyModuleLoader);
    return thrownBy(() => loader.load(() => RateLimitGraphqlModule.forRoot()));
  },
  SLUICE_TWO_COPIES: () => {
    const [copy] = anotherCopy<[typeof import('../../lib/index.js')]>('index.js');
    class Mails {
      constructor(@Inject(copy.LimiterService) readonly limiters: object) {}
    }
    return thrownBy(() => startUp({}, [], { providers: [Mails] }));
  },
  SLUICE_MISSING_PACKAGE: () => without('ioredis', () => started({ redis: server.url })),
  SLUICE_UNCHECKED_LIMIT: () => started({ guard: false }, [controllerWith(minute)]),
  SLUICE_NOT_INJECTED: () => thrownBy(() => new (RateLimitGuard as Type)()),
  SLUICE_INVALID_NAMESPACE: () => {
    const controller = controllerWith(minute);
    return thrownBy(() => {
      RateLimit.namespace('@reports')(controller);
      return startUp({}, [controller]);
    });
  },
  SLUICE_UNKNOWN_ROUTE: async () => {
    const service = await limiters();
    return thrownBy(() => service.explain({ controller: 'Reports', handler: 'list', key: 'user:1' }));
  },
  SLUICE_MOVED_METHOD: async () => {
    const service = (await limiters()) as unknown as { fetch: (limit: string) => unknown };
    return thrownBy(() => service.fetch('email'));
  },
  SLUICE_INVALID_ARGUMENT: async () => {
    const service = await limiters();
    return thrownBy(() => service.for('slots').hold('user:1', 'work' as never));
  },
  SLUICE_INVALID_COST: async () => {
    const service = await limiters();
    return thrownBy(() => service.for('email').consume('user:1', 0.5));
  },
  SLUICE_INVALID_KEY: async () => {
    const service = await limiters();
    return thrownBy(() => service.for('email').consume(''));
  },
  SLUICE_UNSUPPORTED_CALL: async () => {
    const service = await limiters();
    return thrownBy(() => service.for('email').hold('user:1', () => undefined));
  },
  SLUICE_TOO_MANY_LIMITS: async () => {
    const service = await limiters();
    const checks = Array.from({ length: 1001 }, (_, index) => ({ limit: 'email', key: `user:${index}` }));
    return thrownBy(() => service.check(checks));
  },
  SLUICE_INVALID_RESULT: async () => {
    const outbound = (await app()).get(OutboundLimiter);
    return thrownBy(() => outbound.fetch('email', { key: () => '' })('http://127.0.0.1'));
  },
  SLUICE_RESOLVE_TIMEOUT: () =>
    refusedBy({ limits: [() => new Promise<never>(() => undefined)], resolveTimeout: '10ms' }, [
      controllerWith(minute),
    ]),
  SLUICE_NO_READER: async () => {
    const guard = (await app({ limits: [minute] })).get(RateLimitGuard);
    const context = new ExecutionContextHost([{}], class Pigeons {}, function fly() {});
    context.setType('pigeons');
    return ((await thrownBy(() => guard.canActivate(context))) as HttpException).cause;
  },
  SLUICE_LIMIT_EXCEEDED: () => refusedBy({}, [controllerWith({ ...minute, rate: 1 })], 2),
  SLUICE_DENIED: () => refusedBy({ lists: { deny: [{ ip: '127.0.0.1' }] } }, [controllerWith(minute)]),
  SLUICE_TIMEOUT: async () => {
    const limiter = (await limiters()).for('email');
    await limiter.consume('user:1', 3);
    return thrownBy(() => limiter.acquire('user:1', { timeout: 100 }));
  },
  SLUICE_COST_ABOVE_QUOTA: async () => {
    const service = await limiters();
    return thrownBy(() => service.for('email').acquire('user:1', { cost: 5, timeout: '1h' }));
  },
  SLUICE_TOO_MANY_WAITERS: async () => {
    const limiter = (await limiters({ maxWaiters: 1 })).for('email');
    await limiter.consume('user:1', 3);
    return Promise.race([1, 2].map(() => thrownBy(() => limiter.acquire('user:1', { timeout: '1h' }))));
  },
  SLUICE_NOT_SENT: async () => {
    const usedUp = () => Promise.resolve(new Response('', { headers: { RateLimit: '"day";r=0;t=3600' } }));
    const fetch = paced(usedUp);
    await fetch('https://api.example');
    return thrownBy(() => fetch('https://api.example'));
  },
  SLUICE_STORE_FAILED: async () => {
    const service = await onRedis('');
    await admin.config('SET', 'maxmemory', 1);
    try {
      return await consumed(service);
    } finally {
      await admin.config('SET', 'maxmemory', 0);
    }
  },
  SLUICE_STORE_TIMEOUT: async () => {
    // A client that is connected, so that the time can only run out because the server doesn't answer.
    const redis = new Redis(server.url, { ...SENDS_ONCE, lazyConnect: true });
    await redis.connect();
    const service = await limiters({ redis, timeout: 20 });
    server.pause();
    try {
      return await consumed(service);
    } finally {
      server.resume();
      redis.disconnect();
    }
  },
  SLUICE_CIRCUIT_OPEN: async () => {
    const service = await limiters({ redis: `redis://127.0.0.1:${await freePort()}` });
    let error: unknown;
    for (let calls = 0; calls < 100 && (error as { code?: string })?.code !== 'SLUICE_CIRCUIT_OPEN'; calls++) {
      error = await consumed(service);
    }
    return error;
  },
  SLUICE_REDIS_UNREACHABLE: async () => consumed(await limiters({ redis: `redis://127.0.0.1:${await freePort()}` })),
  SLUICE_REDIS_AUTH: async () => consumed(await onRedis('locked:wrong@')),
  SLUICE_REDIS_RIGHTS: async () => consumed(await onRedis('limited:secret@')),
  SLUICE_NOT_REPLICATED: async () => {
    const service = await onRedis('', { define: { paid: { ...minute, replicas: 1 } } });
    const paid = consumed(service, 'paid');
    // Redis waits for a replica until the time is up, or something ends that.
    let blocked: string | undefined;
    await until(async () => {
      blocked = /^id=(\d+) .* flags=b /m.exec(String(await admin.client('LIST')))?.[1];
      return blocked !== undefined;
    });
    await admin.client('UNBLOCK', Number(blocked));
    return paid;
  },
  SLUICE_HOME_UNREACHABLE: async () => {
    const regions = { name: 'us', home: `redis://127.0.0.1:${await freePort()}` };
    const service = await onRedis('', { timeout: 250, regions, define: { all: { ...minute, scope: 'world' } } });
    let error: unknown;
    // A busy machine may not answer within the longest timeout that regions allow.
    await until(async () => {
      error = await consumed(service, 'all');
      return (error as { code?: unknown }).code === 'SLUICE_HOME_UNREACHABLE';
    });
    return error;
  },
  SLUICE_ROLLBACK_CONFLICT: async () => {
    const service = await limiters();
    await service.setRate('email', { rate: 4 });
    const rolled = thrownBy(() => service.rollback(0));
    const others = new AbortController();
    void rolled.then(() => others.abort());
    for (let rate = 5; !others.signal.aborted; rate++) {
      void service.setRate('email', { rate });
      await Promise.resolve();
    }
    return rolled;
  },
  SLUICE_SHUTTING_DOWN: async () => {
    const module = await app();
    const limiter = module.get(LimiterService).for('email');
    await limiter.consume('user:1', 3);
    const waiting = thrownBy(() => limiter.acquire('user:1', { timeout: '1h' }));
    await module.close();
    return waiting;
  },
};

/** The section of a code, from its heading to the next. */
const sections = new Map(
  page
    .split(/^#+ /m)
    .slice(1)
    .map((section): [string, string] => [section.slice(0, section.indexOf('\n')), section])
    .filter(([heading]) => heading.startsWith('SLUICE_')),
);

/** The message that a section shows, as a pattern: `…` stands for anything. */
function shownMessage(section: string): RegExp {
  const [, shown] = /^```\n(.+)\n```$/m.exec(section)!;
  const parts = shown!.split('…').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join('.*')}$`, 's');
}

beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.url);
  await admin.acl('SETUSER', 'limited', 'on', '>secret', '~*', '&*', '+@all', '-eval', '-evalsha', '-fcall');
  await admin.acl('SETUSER', 'locked', 'on', '>right', '~*', '&*', '+@all');
});

afterEach(async () => {
  const closing = opened;
  opened = [];
  for (const each of closing) await each.close();
});

afterAll(async () => {
  admin.disconnect();
  await server.stop();
});

describe('the page about errors', () => {
  it('has a section for each code, and for no other', () => {
    expect([...sections.keys()].toSorted()).toEqual(Object.keys(ERRORS).toSorted());
  });

  it.each(Object.entries(ERRORS))('says of %s what its error says', async (code, causeError) => {
    const error = await causeError();
    expect(error).toBeInstanceOf(Error);
    expect((error as { code?: unknown }).code).toBe(code);
    expect((error as Error).message).toMatch(shownMessage(sections.get(code)!));
    expect(sections.get(code)).toContain(`\`${(error as Error).name}\``);
  });
});
