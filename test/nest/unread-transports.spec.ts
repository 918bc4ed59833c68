import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  InternalServerErrorException,
  Logger,
  SetMetadata,
} from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { firstValueFrom, of } from 'rxjs';
import {
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitExceededException,
  RateLimitGuard,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../lib/index.js';
import { interceptorOf } from '../support/nest/app-parts.js';

const minute = { algo: 'fixed-window', rate: 2, interval: '1m' } as const;
const byTenant = (context: ExecutionContext) => context.getArgByIndex<{ tenant?: string }>(0)?.tenant;
const define = {
  address: minute,
  user: { ...minute, key: 'user' },
  userOrNone: { ...minute, key: 'user', onMissingKey: 'skip' },
  userOrRefused: { ...minute, key: 'user', onMissingKey: 'refuse' },
  header: { ...minute, key: 'header:x-api-key' },
  shadow: { ...minute, mode: 'shadow' },
  all: { ...minute, key: 'global' },
  tenant: { ...minute, key: byTenant },
  tenantOrNone: { ...minute, key: byTenant, onMissingKey: 'skip' },
  shared: { algo: 'gcra', rate: 2, interval: '1m', key: 'global', share: { by: 'user' } },
} satisfies Record<string, LimitDefinition>;
type Name = keyof typeof define;

const names = Object.keys(define) as Name[];

@Controller()
class Handlers {
  declare readonly handlers: Record<Name, () => void>;
}
for (const name of names) {
  const handler = { value: () => undefined, configurable: true, enumerable: false, writable: true };
  Object.defineProperty(Handlers.prototype, name, handler);
  // As packages mark the methods that they call.
  for (const declared of [RateLimit(name) as MethodDecorator, SetMetadata('a-package:tool', name)]) {
    declared(Handlers.prototype, name, Object.getOwnPropertyDescriptor(Handlers.prototype, name)!);
  }
}

const next: CallHandler = { handle: () => of('handled') };

let app: TestingModule | undefined;
afterEach(async () => {
  jest.restoreAllMocks();
  await app?.close();
});

async function start(options: RateLimitModuleOptions = {}) {
  const log = { warn: [] as string[], error: [] as string[] };
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((text: unknown) => void log.warn.push(String(text)));
  jest.spyOn(Logger.prototype, 'error').mockImplementation((text: unknown) => void log.error.push(String(text)));
  app = await Test.createTestingModule({
    imports: [RateLimitModule.forRoot({ define, ...options })],
    controllers: [Handlers],
  }).compile();
  await app.init();
  const guard = app.get(RateLimitGuard);
  const interceptor = interceptorOf(app);
  const context = (name: Name, args: readonly unknown[] = [], type = 'mcp') =>
    ({
      getType: () => type,
      getArgs: () => args,
      getArgByIndex: (index: number) => args[index],
      getClass: () => Handlers,
      getHandler: () => (Handlers.prototype as unknown as Record<string, object>)[name],
    }) as unknown as ExecutionContext;
  const call = async (name: Name, ...args: readonly unknown[]): Promise<unknown> => {
    const called = context(name, args);
    try {
      await guard.canActivate(called);
      return await firstValueFrom(await interceptor.intercept(called, next));
    } catch (error) {
      return error;
    }
  };
  return { call, log, explain: (name: Name) => app!.get(LimiterService).explain(context(name)) };
}

describe('a transport that no reader reads', () => {
  it.each<Name>(['address', 'user', 'userOrNone', 'header', 'shared'])(
    'refuses where nobody knows whom the limit %s counts, and names the transport once',
    async (name) => {
      const { call, log } = await start();
      for (let request = 0; request < 3; request++) {
        const error = await call(name);
        expect(error).toBeInstanceOf(InternalServerErrorException);
        expect((error as Error).message).toBe('Rate limits cannot be checked here');
      }
      expect(log.warn).toEqual([]);
      expect(log.error).toHaveLength(1);
      expect(log.error[0]).toContain(`limit '${name}'`);
      expect(log.error[0]).toContain("transport 'mcp'");
      expect(log.error[0]).toContain("'readers'");
      expect(log.error[0]).toContain('onMissingReader');
    },
  );

  it('counts by what needs no reader', async () => {
    const { call, log } = await start();
    expect([await call('all'), await call('all')]).toEqual(['handled', 'handled']);
    expect(await call('all')).toBeInstanceOf(RateLimitExceededException);
    for (const tenant of ['one', 'two']) {
      expect([await call('tenant', { tenant }), await call('tenant', { tenant })]).toEqual(['handled', 'handled']);
      expect(await call('tenant', { tenant })).toBeInstanceOf(RateLimitExceededException);
    }
    expect(log).toEqual({ warn: [], error: [] });
  });

  it('does with a function that finds nothing what the limit says, and never counts an address that nobody read', async () => {
    const { call } = await start();
    expect(await call('tenantOrNone', {})).toBe('handled');
    expect(await call('tenant', {})).toBeInstanceOf(InternalServerErrorException);
    expect(await call('userOrRefused')).toMatchObject({ status: 401 });
  });

  it('lets calls through where onMissingReader says so, with one warning that names the transport', async () => {
    const { call, log } = await start({ onMissingReader: 'skip' });
    for (let request = 0; request < 3; request++) expect(await call('address')).toBe('handled');
    expect(log.error).toEqual([]);
    expect(log.warn).toHaveLength(1);
    expect(log.warn[0]).toContain("limit 'address'");
    expect(log.warn[0]).toContain("transport 'mcp'");
  });

  it('refuses nothing for a shadow, and says so', async () => {
    const { call, log } = await start();
    for (let request = 0; request < 3; request++) expect(await call('shadow')).toBe('handled');
    expect(log.warn).toEqual([expect.stringContaining("transport 'mcp'")]);
  });

  it('is explained as it is decided', async () => {
    const refusing = await start();
    const told = await refusing.explain('address');
    expect(told.outcome.verdict).toBe('refused');
    expect(told.limits[0]).toMatchObject({ status: 'no key', reason: expect.stringContaining("transport 'mcp'") });
    await app?.close();
    const skipping = await start({ onMissingReader: 'skip' });
    expect((await skipping.explain('address')).outcome.verdict).toBe('allowed');
  });

  it('has no other answers than these two', async () => {
    const options = { onMissingReader: 'allow' } as unknown as RateLimitModuleOptions;
    await expect(start(options)).rejects.toThrow(
      "RateLimitModule.onMissingReader: expected one of refuse, skip, received 'allow'",
    );
  });
});
