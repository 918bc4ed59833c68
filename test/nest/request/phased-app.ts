import { jest } from '@jest/globals';
import type { ExecutionContext, Type } from '@nestjs/common';
import type { TestingModule } from '@nestjs/testing';
import { lastValueFrom, type Observable } from 'rxjs';
import type { LimitDefinition, MemoryStore, Outcome, Store } from '../../../lib/index.js';
import { RATE_LIMIT_STORE } from '../../../lib/app/config/tokens.js';
import type { RequestLimiter } from '../../../lib/nest/request/request-limiter.js';
import { createTestingStore, TestClock } from '../../../lib/testing/index.js';
import { AppCalls, type AppLimits, callOf } from './app-calls.js';
import { Connection } from './connections.js';

/** How a call comes: over HTTP with the response that it is given, or as a message, which has none. */
export interface CallOptions {
  readonly response?: object;
  readonly type?: 'http' | 'rpc';
}

/** One call of a handler, led through its phases. */
export class PhasedCall {
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

/** An app of one controller, whose guard and interceptor tests call themselves. */
export class PhasedApp {
  private constructor(
    private readonly app: AppCalls,
    readonly store: MemoryStore,
    readonly clock: TestClock,
    private readonly routes: Type<object>,
  ) {}

  static async start(
    routes: Type<object>,
    define: Record<string, LimitDefinition>,
    options: AppLimits = {},
  ): Promise<PhasedApp> {
    const clock = new TestClock();
    const store = createTestingStore({ clock });
    const app = await AppCalls.start([routes], { store, define, headers: false, ...options });
    return new PhasedApp(app, store, clock, routes);
  }

  /** Calls a handler by its name. */
  call(name: string, { response = {}, type = 'http' }: CallOptions = {}): PhasedCall {
    const args = type === 'http' ? [{ headers: {} }, response] : [{}, {}];
    return new PhasedCall(this.app.limiter, callOf(this.routes, name as never, args, type));
  }

  get module(): TestingModule {
    return this.app.module;
  }

  /** The store as requests ask it. */
  get asked(): Store {
    return this.module.get<Store>(RATE_LIMIT_STORE);
  }

  /** What a limit has left of all calls together. */
  remaining(name: string): Promise<number> {
    return this.app.left(name, 'global');
  }

  close(): Promise<void> {
    return this.app.close();
  }
}

/** Whether calls count, for limits whose `count` is `counts`: they do, unless a test says otherwise. */
export const count = jest.fn<(outcome: Outcome) => boolean | Promise<boolean>>();
export const counts = (outcome: Outcome) => count(outcome);

/** Begins a test: starts its app, and makes the connection of its calls. */
export async function begin(...given: Parameters<typeof PhasedApp.start>) {
  count.mockReset();
  count.mockReturnValue(true);
  return { app: await PhasedApp.start(...given), connection: new Connection() };
}

/** Ends a test. */
export async function end(app: PhasedApp): Promise<void> {
  jest.useRealTimers();
  jest.restoreAllMocks();
  await app.close();
}
