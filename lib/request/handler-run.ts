import 'reflect-metadata';
import { AsyncLocalStorage } from 'node:async_hooks';
import { types } from 'node:util';
import type { ExecutionContext } from '@nestjs/common';
import { finalize, map, type Observable, tap } from 'rxjs';
import { clientLeft } from './client-left.js';
import type { HandlerEnd } from './request-completion.js';
import { isStream, watched } from './subscription.js';

/** A method of a controller or a gateway. */
type Method = (this: unknown, ...args: unknown[]) => unknown;

/** The run that a handler is called for. */
const current = new AsyncLocalStorage<HandlerRun>();

/** The functions that stand in place of handlers, so that none is put in place of another. */
const told = new WeakSet<object>();

/**
 * One run of a handler. Nest stops listening to a handler of messages or events whose client leaves, and an interceptor to one that
 * takes too long. Neither can stop what the handler does: so its promise has to be known.
 */
export class HandlerRun {
  private promise: Promise<unknown> | undefined;
  private wasCalled = false;
  private abandoned = false;

  /** Calls what leads to a handler. One that does not tell of its promise need not know its run. */
  lead<T>(handler: object, call: () => T): T {
    return told.has(handler) ? current.run(this, call) : call();
  }

  /** What a handler gives, and what tells once that it is done: with it all, with an error, or because nobody listens any more. */
  watch(
    handled: Observable<unknown>,
    context: ExecutionContext,
    ended: (end: HandlerEnd) => void,
  ): Observable<unknown> {
    const mayStream = context.getType<string>() === 'graphql';
    let streams = false;
    const handlerEnded = (end: HandlerEnd) => (streams ? undefined : ended(end));
    return handled.pipe(
      map((value) => {
        if (!mayStream || !isStream(value)) return value;
        streams = true;
        return watched(value, (failed, error) => ended({ failed, error }));
      }),
      tap({
        // An interceptor may have given the handler up, as one with a time-out does, and the handler runs on.
        error: (error: unknown) => this.onceDone(() => handlerEnded({ failed: true, error })),
        complete: () => handlerEnded({ failed: false }),
      }),
      finalize(() => {
        this.abandoned = true;
        this.onceDone(() => handlerEnded({ failed: true, aborted: true }));
      }),
    );
  }

  /** Calls a handler for the run that led to it, if there is one. */
  static call(handler: Method, self: unknown, args: unknown[]): unknown {
    const run = current.getStore();
    // What a handler calls of its own is no run.
    if (run === undefined || run.wasCalled) return Reflect.apply(handler, self, args);
    run.wasCalled = true;
    if (run.abandoned) throw clientLeft();
    const result: unknown = Reflect.apply(handler, self, args);
    // Nothing else with a `then` is touched: a lazy query would begin once more.
    if (types.isPromise(result)) run.promise = result;
    return result;
  }

  /** Calls back once the handler is done, whoever listens to it; at once if it gave no promise. */
  private onceDone(tell: () => void): void {
    if (this.promise === undefined) tell();
    else void this.promise.then(tell, tell);
  }
}

/** Puts a function in place of a handler that tells of its promise, and is the same in all else, its metadata included. */
export function tellOfPromise(prototype: object, name: string): void {
  const owner = ownerOf(prototype, name);
  const descriptor = owner === undefined ? undefined : Object.getOwnPropertyDescriptor(owner, name);
  const handler = descriptor?.value as Method | undefined;
  if (owner === undefined || typeof handler !== 'function' || told.has(handler) || descriptor?.configurable !== true)
    return;
  const telling: Method = function (...args) {
    return HandlerRun.call(handler, this, args);
  };
  Object.defineProperties(telling, { name: { value: handler.name }, length: { value: handler.length } });
  Object.setPrototypeOf(telling, handler);
  // Metadata is inherited, but some look for a function's own.
  for (const key of Reflect.getOwnMetadataKeys(handler)) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, handler), telling);
  }
  told.add(telling);
  Object.defineProperty(owner, name, { ...descriptor, value: telling });
}

/** Where a method stands: in a prototype, or one that it inherits from. */
function ownerOf(prototype: object, name: string): object | undefined {
  let owner: object | null = prototype;
  while (owner !== null && !Object.hasOwn(owner, name)) owner = Object.getPrototypeOf(owner) as object | null;
  return owner ?? undefined;
}
