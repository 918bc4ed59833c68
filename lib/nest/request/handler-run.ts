import { AsyncLocalStorage } from 'node:async_hooks';
import { types } from 'node:util';
import type { CallHandler, ExecutionContext } from '@nestjs/common';
import 'reflect-metadata';
import { defer, finalize, map, Observable, takeWhile, tap } from 'rxjs';
import { LongTimeout } from '../../engine/util/long-timeout.js';
import { CallRun, clientClosedRequest, runOf } from './call-run.js';
import type { LimitedRequest } from './limited-request.js';
import { type HandlerEnd, LEFT_BEHIND_MS } from './request-completion.js';

/** A method of a controller or a gateway. */
type Method = (this: unknown, ...args: unknown[]) => unknown;

/** The run that is currently calling a handler. */
const current = new AsyncLocalStorage<HandlerRun>();

/** The functions that have replaced handlers, so that no handler is replaced twice. */
const reporting = new WeakSet<object>();

/**
 * One run of a handler. Nest unsubscribes from handlers of messages and events when their client leaves, and an interceptor may do so after
 * a timeout. Neither can stop the handler, so its promise has to be tracked.
 */
export class HandlerRun {
  /** True if the handler has returned a promise that has not settled. */
  private isAtWork = false;
  private readonly onDone: (() => void)[] = [];
  private wasCalled = false;
  private abandoned = false;

  constructor(private readonly call: CallRun = new CallRun()) {}

  /** Calls a function that leads to the handler. A handler that does not report its promise needs no access to its run. */
  enter<T>(handler: object, call: () => T): T {
    return reporting.has(handler) ? current.run(this, call) : call();
  }

  /**
   * Forwards the values of a handler, and reports its end: completion, an error, or the loss of its subscriber. Only the first report
   * counts.
   */
  watch(
    handled: Observable<unknown>,
    context: ExecutionContext,
    ended: (end: HandlerEnd) => void,
  ): Observable<unknown> {
    const mayStream = context.getType<string>() === 'graphql';
    let streams = false;
    const handlerEnded = (end: HandlerEnd) => (streams ? undefined : ended(end));
    let isPassingOn = false;
    const reported = handled.pipe(
      map((value) => {
        if (!mayStream || !isStream(value)) return value;
        streams = true;
        return watched(
          value,
          (failed, error) => ended({ failed, error }),
          (step) => this.call.lingerDuring(step),
        );
      }),
      tap({
        // An interceptor, such as one with a timeout, may have given up on the handler, which continues to run even though the call has
        // ended.
        error: (error: unknown) => this.onceDone((overdue) => handlerEnded({ failed: true, error, ...overdue })),
        complete: () => this.onceDone((overdue) => handlerEnded({ failed: false, ...overdue })),
      }),
      finalize(() => {
        this.abandoned = true;
        if (isPassingOn)
          this.call.whenIdle(() => this.onceDone((overdue) => handlerEnded({ ...this.passedOn, ...overdue })));
        else this.onceDone((overdue) => handlerEnded({ failed: true, aborted: true, ...overdue }));
      }),
    );
    // A subscriber that leaves as it receives a value has all that it needs, such as an interceptor of the app with `take(1)`. It also
    // leaves if it throws because of the value, which the run of the call notes before its interceptors are done.
    return new Observable((subscriber) =>
      reported.pipe(takeWhile(() => !subscriber.closed)).subscribe({
        next: (value) => {
          isPassingOn = true;
          this.call.thrown = undefined;
          subscriber.next(value);
          isPassingOn = subscriber.closed;
        },
        error: (error: unknown) => subscriber.error(error),
        complete: () => subscriber.complete(),
      }),
    );
  }

  /** The end of a call whose interceptors have taken its value. */
  private get passedOn(): HandlerEnd {
    const { thrown } = this.call;
    return { failed: thrown !== undefined, ...thrown };
  }

  /** Calls a handler for its current run, if there is one. */
  static call(handler: Method, self: unknown, args: unknown[]): unknown {
    const run = current.getStore();
    // A handler that is called by another handler has no run.
    if (run === undefined || run.wasCalled) return Reflect.apply(handler, self, args);
    run.wasCalled = true;
    if (run.abandoned) throw clientClosedRequest();
    const result: unknown = Reflect.apply(handler, self, args);
    // Other thenables aren't awaited, because a lazy query would run again.
    if (types.isPromise(result)) run.awaits(result);
    return result;
  }

  /** Reports the end once the handler is done, with or without a subscriber, or overdue; immediately if it returned no promise. */
  private onceDone(report: (overdue?: { readonly overdue: true }) => void): void {
    if (!this.isAtWork) return report();
    const leftBehind = new LongTimeout(LEFT_BEHIND_MS, () => report({ overdue: true }), false);
    this.onDone.push(() => {
      leftBehind.clear();
      report();
    });
  }

  private awaits(promise: Promise<unknown>): void {
    this.isAtWork = true;
    const end = () => {
      this.isAtWork = false;
      for (const report of this.onDone) report();
    };
    promise.then(end, end);
  }
}

/** Replaces a handler with a function that reports its promise to its run. Everything else, including its metadata, stays the same. */
export function reportPromise(prototype: object, name: string): void {
  const owner = ownerOf(prototype, name);
  if (owner === undefined) return;
  const descriptor = Object.getOwnPropertyDescriptor(owner, name)!;
  const handler = descriptor.value as Method | undefined;
  if (typeof handler !== 'function' || reporting.has(handler) || descriptor.configurable !== true) return;
  const wrapper: Method = function (...args) {
    return HandlerRun.call(handler, this, args);
  };
  Object.defineProperties(wrapper, { name: { value: handler.name }, length: { value: handler.length } });
  Object.setPrototypeOf(wrapper, handler);
  // Metadata is inherited, but some packages read only a function's own.
  for (const key of Reflect.getOwnMetadataKeys(handler)) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, handler), wrapper);
  }
  reporting.add(wrapper);
  Object.defineProperty(owner, name, { ...descriptor, value: wrapper });
}

/** The prototype that has the method as its own: the given one, or one that it inherits from. */
function ownerOf(prototype: object, name: string): object | undefined {
  let owner: object | null = prototype;
  while (owner !== null && !Object.hasOwn(owner, name)) owner = Object.getPrototypeOf(owner) as object | null;
  return owner ?? undefined;
}

/** Runs a handler, and reports its end to the completions of its requests: that of the guards, and that of a middleware. */
export function watchHandler(
  requests: readonly LimitedRequest[],
  context: ExecutionContext,
  next: CallHandler,
): Observable<unknown> {
  const completions = requests.flatMap(({ completion }) => completion ?? []);
  if (completions.length === 0) return next.handle();
  const call = runOf(context.getArgs()) ?? new CallRun();
  for (const completion of completions) completion.follow(call);
  const run = new HandlerRun(call);
  const handled = run.enter(context.getHandler(), () => next.handle());
  return defer(() => {
    if (completions.some(({ wasClosed }) => wasClosed)) throw clientClosedRequest();
    for (const lease of requests.flatMap(({ leases }) => leases)) lease.keepAlive();
    const runs = completions.map((completion) => completion.handlerStarted());
    call.takeOver();
    return run.watch(handled, context, (end) => {
      for (const ended of runs) ended(end);
    });
  });
}

/** The stream of a GraphQL subscription, which its client can end. */
type Stream = AsyncIterable<unknown>;

/** Returns true if a handler returned a stream that is read later, so that its work is not done. */
export function isStream(value: unknown): value is Stream {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

/**
 * Wraps a stream to report its end: on its own, with an error, or because its reader has left. It also reports each step, since a generator
 * completes the current one after its reader has left.
 */
export function watched(
  stream: Stream,
  ended: (failed: boolean, error?: unknown) => void,
  began: (step: Promise<unknown>) => void = () => {},
): AsyncIterableIterator<unknown> {
  const iterator = stream[Symbol.asyncIterator]();
  const begin = <T extends Promise<unknown> | undefined>(step: T): T => {
    if (step !== undefined) began(step);
    return step;
  };
  const watch = async (step: Promise<IteratorResult<unknown>>) => {
    try {
      const result = await step;
      if (result.done === true) ended(false);
      return result;
    } catch (error) {
      ended(true, error);
      throw error;
    }
  };
  return {
    next: () => watch(begin(iterator.next())),
    async return(value) {
      const left = begin(iterator.return?.(value));
      // It may be waiting for an event that never happens.
      ended(false);
      return (await left) ?? { done: true, value };
    },
    async throw(error) {
      const thrown = begin(iterator.throw?.(error));
      ended(true, error);
      if (thrown === undefined) throw error;
      return thrown;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
