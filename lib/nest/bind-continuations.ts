import { type CanActivate, type ExecutionContext, type NestInterceptor, SetMetadata } from '@nestjs/common';
import type { MetadataScanner, ModulesContainer } from '@nestjs/core';
import { bindsCheckingGuard, GUARDS, OWN_GUARD } from '../app/rules/bound-guards.js';
import { reportPromise } from './request/handler-run.js';
import { searchRequest } from './request/requests.js';

/** Nest's metadata keys of `@UseInterceptors`, and of classes and handlers, in Nest 11 and 12. */
const INTERCEPTORS = '__interceptors__';
const GATEWAY = 'websockets:is_gateway';
const MESSAGE_HANDLER = 'microservices:handler_type';
const MESSAGE_MAPPING = 'websockets:message_mapping';
const EVENT_STREAM = '__sse__';
const PATH = 'path';
const METHOD = 'method';

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
 */
export function bindContinuations(modules: ModulesContainer, scanner: MetadataScanner, seesRoutes: boolean): void {
  for (const { controllers, providers } of modules.values()) {
    for (const { metatype } of [...controllers.values(), ...providers.values()]) {
      if (typeof metatype !== 'function' || typeof metatype.prototype !== 'object' || metatype.prototype === null)
        continue;
      const prototype = metatype.prototype as Record<string, object>;
      const names = scanner.getAllMethodNames(prototype);
      for (const name of names) {
        const handler = prototype[name] as object;
        if (mayBeAbandoned(handler) || (seesRoutes && isHttpRoute(handler))) reportPromise(prototype, name);
      }
      const handlers = names.map((name) => prototype[name] as object);
      for (const handler of handlers) {
        if (Reflect.hasMetadata(EVENT_STREAM, handler)) bind(GUARDS, handler, (bound) => [...bound, lastGuard]);
      }
      if (!takesMessages(metatype, handlers)) continue;
      for (const target of [metatype, ...handlers]) {
        if (bindsCheckingGuard(target)) bind(INTERCEPTORS, target, (bound) => [interceptor, ...bound]);
      }
    }
  }
}

/** Returns true if Nest unsubscribes from a handler when its client leaves. */
function mayBeAbandoned(handler: object): boolean {
  return [EVENT_STREAM, MESSAGE_MAPPING, MESSAGE_HANDLER].some((key) => Reflect.hasMetadata(key, handler));
}

function isHttpRoute(handler: object): boolean {
  return Reflect.hasMetadata(PATH, handler) && Reflect.hasMetadata(METHOD, handler);
}

function takesMessages(type: object, handlers: readonly object[]): boolean {
  return (
    Reflect.hasMetadata(GATEWAY, type) || handlers.some((handler) => Reflect.hasMetadata(MESSAGE_HANDLER, handler))
  );
}

/** Adds to the enhancers that are bound to a class or handler, unless another app has already done so. */
function bind(key: string, target: object, added: (bound: readonly object[]) => readonly object[]): void {
  const bound = (Reflect.getMetadata(key, target) as readonly object[] | undefined) ?? [];
  if (!bound.includes(interceptor) && !bound.includes(lastGuard)) Reflect.defineMetadata(key, added(bound), target);
}
