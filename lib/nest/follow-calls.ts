import { type CanActivate, type ExecutionContext, type NestInterceptor, SetMetadata, type Type } from '@nestjs/common';
import { MetadataScanner, type ModulesContainer } from '@nestjs/core';
import { GuardsConsumer } from '@nestjs/core/guards/guards-consumer.js';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { InterceptorsConsumer } from '@nestjs/core/interceptors/interceptors-consumer.js';
import { isObservable, NEVER, Observable, tap } from 'rxjs';
import { bindsCheckingGuard, GUARDS, OWN_GUARD } from '../app/rules/guard-check.js';
import { isGateway, METHOD, PATH } from '../app/rules/route-names.js';
import { isAwaited } from '../app/rules/route-rules-registry.js';
import { isPromise } from '../engine/util/awaitable.js';
import type { BindTo } from './bind-for-app.js';
import { CallRun, type EndPart, keepRun, runOf } from './request/call-run.js';
import { reportPromise } from './request/handler-run.js';
import { searchRequest } from './request/requests.js';

type Activate = GuardsConsumer['tryActivate'];
type Intercept = InterceptorsConsumer['intercept'];
type Handle = Parameters<Intercept>[4];

let follows = false;

/**
 * Tracks when Nest is done with the guards, interceptors, pipes and handler of a call whose end has to be known. On every transport, Nest
 * runs calls through the same two methods. Nothing else reports the end of a guard whose client has left, or of a pipe whose result nobody
 * awaits.
 */
export function followCalls(): void {
  if (follows) return;
  follows = true;
  const tryActivate = Reflect.get(GuardsConsumer.prototype, 'tryActivate');
  GuardsConsumer.prototype.tryActivate = function (this: GuardsConsumer, ...call: Parameters<Activate>) {
    if (!isAwaited(call[3])) return tryActivate.apply(this, call);
    const run = keepRun(call[1], new CallRun());
    const activated = tryActivate.apply(this, call);
    run.guards(activated);
    return activated;
  };
  const intercept = Reflect.get(InterceptorsConsumer.prototype, 'intercept');
  InterceptorsConsumer.prototype.intercept = function (this: InterceptorsConsumer, ...call: Parameters<Intercept>) {
    if (!isAwaited(call[3])) return intercept.apply(this, call);
    const [interceptors, args, instance, handler, next, type] = call;
    const context = new ExecutionContextHost(args, instance.constructor as never, handler);
    const run = searchRequest(context)?.run ?? runOf(args) ?? new CallRun();
    keepRun(args, run);
    const followed = interceptors?.map((interceptor) => following(interceptor, run));
    const handled = intercept.call(this, followed, args, instance, handler, handling(next, run), type);
    run.prepares(handled);
    return handled;
  } as Intercept;
}

/** Wraps an interceptor, which counts as running until it has returned its Observable. The run learns of its errors. */
function following(interceptor: NestInterceptor, run: CallRun): NestInterceptor {
  const note = (error: unknown) => void (run.thrown = { error });
  const noted = (given: Observable<unknown>) => (isObservable(given) ? given.pipe(tap({ error: note })) : given);
  const refused = (error: unknown) => {
    note(error);
    throw error;
  };
  return {
    intercept: (context, next) => {
      const given = interceptor.intercept(context, next);
      if (!isPromise(given)) return noted(given);
      // The `then` of a thenable may return anything.
      const followed = Promise.resolve(given).then(noted, refused);
      run.during(followed);
      return followed;
    },
  };
}

/** Wraps the pipes and the handler, which count as running until they have returned a value, and, if that is a stream, until it ends. */
function handling(next: Handle, run: CallRun): Handle {
  return async () => {
    const given: Promise<unknown> = next();
    run.during(given);
    const value = await given;
    if (isObservable(value)) return partOfCall(value, run);
    run.lingerWith(value);
    return value;
  };
}

/** The private part of an RxJS subscription: everything that is cancelled with it, including subscriptions to its sources. */
interface Kept {
  readonly closed?: boolean;
  readonly isStopped?: boolean;
  readonly _finalizers?: readonly object[] | null;
}

/**
 * Makes an Observable a part of a call that ends with the Observable. If the subscriber leaves first, everything that can be cancelled is
 * cancelled. A promise inside continues, and an asynchronous generator continues until its next value: these linger.
 */
export function partOfCall(observable: Observable<unknown>, run: CallRun): Observable<unknown> {
  return new Observable((subscriber) => {
    const end = run.begin();
    const source = observable.subscribe({
      next: (value) => {
        run.lingerWith(value);
        subscriber.next(value);
      },
      error: (error: unknown) => {
        end();
        subscriber.error(error);
      },
      complete: () => {
        end();
        subscriber.complete();
      },
    });
    return () => {
      const pending = source.closed || waitsForNothing(observable) ? [] : uncancellable(source as object);
      source.unsubscribe();
      for (const each of pending) onceNoticed(each, run.linger());
      end();
    };
  });
}

/** Returns true if an Observable never emits because it is based on `NEVER`, as one that only keeps an event stream open. */
function waitsForNothing(observable: Observable<unknown>): boolean {
  let source: Observable<unknown> | undefined = observable;
  while (source !== undefined && source !== NEVER) source = source.source;
  return source === NEVER;
}

/** The open subscriptions inside a subscription that unsubscribing does not cancel, such as that of a promise. */
function uncancellable(subscription: Kept): Kept[] {
  const { _finalizers: finalizers } = subscription;
  // `undefined` if this version of RxJS stores them elsewhere.
  if (finalizers === undefined) return [];
  if (finalizers === null || finalizers.length === 0) return [subscription];
  return finalizers.filter(isOpenSubscriber).flatMap(uncancellable);
}

function isOpenSubscriber({ isStopped, closed }: Kept): boolean {
  return isStopped === false && closed === false;
}

/** Calls back when the sources of an ended subscription notice the end, which they do at their next value. */
function onceNoticed(subscription: Kept, noticed: EndPart): void {
  Object.defineProperty(subscription, 'closed', {
    configurable: true,
    get: () => {
      noticed();
      return true;
    },
  });
  Object.assign(subscription, { next: noticed, error: noticed, complete: noticed });
}

/** Nest's metadata keys of `@UseInterceptors`, and of handlers, in Nest 11 and 12. */
const INTERCEPTORS = '__interceptors__';
/** Also of tools, prompts and resources of `@rekog/mcp-nest`. */
const MESSAGE_HANDLER = 'microservices:handler_type';
const MESSAGE_MAPPING = 'websockets:message_mapping';
const EVENT_STREAM = '__sse__';

/** Does the work of the app's interceptor for calls that a guard of the app has seen. Apps can share it. */
const interceptor: NestInterceptor = {
  intercept: (context, next) => searchRequest(context)?.continuation.intercept(context, next) ?? next.handle(),
};

/** Does the work of the app's interceptor before the handler runs. Apps can also share it. */
@SetMetadata(OWN_GUARD, 'follows')
class LastGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    return searchRequest(context)?.continuation.afterGuards(context) ?? true;
  }
}
const lastGuard = new LastGuard();

/**
 * Makes sure that the interceptor's part follows every check of the guards in time:
 *
 * - If the guard is bound to a gateway or to message handlers, the interceptor is bound as well. Nest's global interceptors do not run for
 *   them in every version and every hybrid app; without it, nothing would be released.
 * - For `@Sse`, Nest sends the headers while interceptors run, when it is too late for a rejection or a header. There, a last guard runs
 *   the check that comes after the guards.
 * - If Nest unsubscribes when a client leaves, and on routes for which one of our interceptors runs, handlers report their promises.
 *
 * `bindGuard` binds the guard to controllers that handle messages. It is called before their interceptors are bound.
 */
export function bindContinuations(modules: ModulesContainer, seesRoutes: boolean, bindGuard?: BindTo): void {
  const scanner = new MetadataScanner();
  for (const module of modules.values()) {
    const { controllers, providers } = module;
    for (const [index, { metatype }] of [...controllers.values(), ...providers.values()].entries()) {
      if (typeof metatype !== 'function' || typeof metatype.prototype !== 'object' || metatype.prototype === null)
        continue;
      const prototype = metatype.prototype as Record<string, object>;
      const names = scanner.getAllMethodNames(prototype);
      let handlesMessages = false;
      for (const name of names) {
        const keys: readonly unknown[] = Reflect.getMetadataKeys(prototype[name] as object);
        if (keys.length === 0) continue;
        if (mayBeAbandoned(keys) || (seesRoutes && isHttpRoute(keys))) reportPromise(prototype, name);
        handlesMessages ||= keys.includes(MESSAGE_HANDLER);
        if (keys.includes(EVENT_STREAM)) bind(GUARDS, prototype[name] as object, (bound) => [...bound, lastGuard]);
      }
      if (handlesMessages && index < controllers.size) bindGuard?.(metatype as Type, module);
      if (!handlesMessages && !isGateway(metatype)) continue;
      for (const target of [metatype, ...names.map((name) => prototype[name] as object)]) {
        if (bindsCheckingGuard(target)) bind(INTERCEPTORS, target, (bound) => [interceptor, ...bound]);
      }
    }
  }
}

/** Returns true if Nest unsubscribes from a handler with this metadata when its client leaves. */
function mayBeAbandoned(keys: readonly unknown[]): boolean {
  return [EVENT_STREAM, MESSAGE_MAPPING, MESSAGE_HANDLER].some((key) => keys.includes(key));
}

function isHttpRoute(keys: readonly unknown[]): boolean {
  return keys.includes(PATH) && keys.includes(METHOD);
}

/** Adds to the enhancers that are bound to a class or handler, unless another app has already done so. */
function bind(key: string, target: object, added: (bound: readonly object[]) => readonly object[]): void {
  const bound = (Reflect.getMetadata(key, target) as readonly object[] | undefined) ?? [];
  if (!bound.includes(interceptor) && !bound.includes(lastGuard)) Reflect.defineMetadata(key, added(bound), target);
}
