import type { ExecutionContext, Provider, Type } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  LimiterService,
  MemoryStore,
  RateLimitModule,
  type RateLimitModuleExtras,
  type RateLimitModuleOptions,
  type RequestReader,
} from '../../../lib/index.js';
import { RequestLimiter } from '../../../lib/nest/request/request-limiter.js';
import { Requests, searchRequest } from '../../../lib/nest/request/requests.js';
import { Transports } from '../../../lib/nest/request/transports.js';
import { createTestingStore } from '../../../lib/testing/index.js';

export type AppLimits = RateLimitModuleOptions & RateLimitModuleExtras;

/** A request, as guards read it. */
export interface Asking {
  ip?: string;
  headers?: Record<string, string>;
  user?: { id: string };
  socket?: object;
}

/** An app without a server, whose calls tests make as Nest does. */
export class AppCalls {
  readonly limiter: RequestLimiter;
  readonly service: LimiterService;

  private constructor(
    readonly module: TestingModule,
    private readonly store: MemoryStore,
  ) {
    this.limiter = module.get(RequestLimiter, { strict: false });
    this.service = module.get(LimiterService);
  }

  static async start(controllers: Type[], limits: AppLimits, providers: Provider[] = []): Promise<AppCalls> {
    const { store = createTestingStore(), ...others } = limits;
    const imports = [RateLimitModule.forRoot({ store, ...others })];
    const module = await Test.createTestingModule({ controllers, providers, imports }).compile();
    module.useLogger(false);
    await module.init();
    return new AppCalls(module, store as MemoryStore);
  }

  /** What a limit has left of a key, and of what that is within. */
  async left(limit: string, key: string, within?: Record<string, string>): Promise<number> {
    const { levels, remaining } = await this.service.for(limit).peek(key, within && { within });
    return levels?.[0]?.remaining ?? remaining;
  }

  /** The reader that reads the requests of a transport. */
  readerOf(transport: string): RequestReader {
    const context = new ExecutionContextHost([]);
    context.setType(transport);
    return this.module.get(Transports, { strict: false }).of(context);
  }

  /** What a call is limited by, and what of it was asked of the store; nothing if no limit concerns the call. */
  limitedBy(context: ExecutionContext) {
    return searchRequest(context) ?? this.module.get(Requests, { strict: false }).findEarly(context);
  }

  async close(): Promise<void> {
    await this.module.close();
    await this.store.close();
  }
}

/** A call of a handler, as guards and interceptors are given it. */
export function callOf<T extends object>(
  type: Type<T>,
  handler: keyof T & string,
  args: readonly unknown[],
  transport = 'http',
): ExecutionContextHost {
  const context = new ExecutionContextHost([...args], type, Reflect.get(type.prototype as T, handler) as () => unknown);
  context.setType(transport);
  return context;
}

/** What a call was told of its limits: their names and quotas, and what they have left. */
export function told(context: ExecutionContext): [string, number, number][] {
  const { decisions } = searchRequest(context)?.result ?? { decisions: [] };
  return decisions.map(({ limit, quota, remaining }) => [limit, quota, remaining]);
}
