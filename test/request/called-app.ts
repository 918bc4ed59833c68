import { type ExecutionContext, type Type } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { Test, type TestingModule } from '@nestjs/testing';
import { lastValueFrom, type Observable } from 'rxjs';
import type { LimitDefinition } from '../../lib/config/limit-definition.js';
import type { RateLimitModuleOptions } from '../../lib/config/module-options.js';
import { RATE_LIMIT_STORE } from '../../lib/config/tokens.js';
import { LimiterService } from '../../lib/nest/limiter.service.js';
import { RateLimitModule } from '../../lib/nest/rate-limit.module.js';
import { RequestLimiter } from '../../lib/request/request-limiter.js';
import type { MemoryStore } from '../../lib/stores/memory/memory.store.js';
import type { Store } from '../../lib/stores/store.js';
import { createTestingStore, TestClock } from '../../lib/testing/index.js';

/** How a call comes: over HTTP with the response that it is given, or as a message, which has none. */
export interface CallOptions {
  readonly response?: object;
  readonly type?: 'http' | 'rpc';
}

/** One call of a handler, led through its phases. */
export class Call {
  constructor(
    private readonly limiter: RequestLimiter,
    private readonly context: ExecutionContext,
  ) {}

  /** What the guard says: a promise only if there is something to wait for. */
  guard(): boolean | Promise<boolean> {
    const said = this.limiter.beforeGuards(this.context);
    // A test that fails before it asks how that ends leaves the rejection to nobody.
    if (said !== true) said.catch(() => undefined);
    return said;
  }

  /** Goes through the guard at once. */
  pass(): void {
    if (this.guard() !== true) throw new Error('the guard did not let the call pass at once');
  }

  /** What the guard says in the end, of a call that it does not let pass at once. */
  held(): Promise<boolean> {
    const said = this.guard();
    if (typeof said === 'boolean') throw new Error('the guard did not hold the call');
    return said;
  }

  /** The check after the guards, and then the handler. Resolves to its last value. */
  async handle<T>(handled: Observable<T>): Promise<T> {
    const intercepted = await this.limiter.intercept(this.context, { handle: () => handled });
    return (await lastValueFrom(intercepted)) as T;
  }
}

/** An app without a server, whose guard and interceptor tests call themselves. */
export class CalledApp {
  private constructor(
    readonly nest: TestingModule,
    readonly store: MemoryStore,
    readonly clock: TestClock,
    private readonly routes: Type,
  ) {}

  static async start(
    routes: Type,
    define: Record<string, LimitDefinition>,
    options: RateLimitModuleOptions = {},
  ): Promise<CalledApp> {
    const clock = new TestClock();
    const store = createTestingStore({ clock });
    const nest = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ store, define, headers: false, ...options })],
      controllers: [routes],
    }).compile();
    await nest.createNestApplication().init();
    return new CalledApp(nest, store, clock, routes);
  }

  /** Calls a handler by its name. */
  call(name: string, { response = {}, type = 'http' }: CallOptions = {}): Call {
    const handler = Reflect.get(this.routes.prototype as object, name) as () => void;
    const args = type === 'http' ? [{ headers: {} }, response] : [{}, {}];
    const context = new ExecutionContextHost(args, this.routes, handler);
    context.setType(type);
    return new Call(this.nest.get(RequestLimiter), context);
  }

  /** The store as requests ask it. */
  get asked(): Store {
    return this.nest.get<Store>(RATE_LIMIT_STORE);
  }

  async remaining(name: string): Promise<number> {
    return (await this.nest.get(LimiterService).for(name).peek('global')).remaining;
  }

  async close(): Promise<void> {
    await this.nest.close();
    await this.store.close();
  }
}
