import type { NestInterceptor, Type } from '@nestjs/common';
import { MetadataScanner, type ModulesContainer } from '@nestjs/core';
import { bindsOwnGuard } from '../plan/bound-guards.js';
import { searchState } from '../request/request-state.js';

/** Where `@UseInterceptors` keeps what it was given, and what marks gateways and handlers of messages, in Nest 11 and 12. */
const INTERCEPTORS = '__interceptors__';
const GATEWAY = 'websockets:is_gateway';
const MESSAGE_HANDLER = 'microservices:handler_type';

/** Does what the app's interceptor does, for calls that a guard of the app has seen; apps can share it. */
const follower: NestInterceptor = {
  intercept: (context, next) => searchState(context)?.follower.intercept(context, next) ?? next.handle(),
};

/**
 * Lets the interceptor follow the guard wherever `@UseGuards(RateLimitGuard)` stands on a gateway or on handlers of messages: Nest's
 * global interceptors do not reach them in every version and every hybrid app, and then nothing would be released there.
 */
export function followGuards(modules: ModulesContainer): void {
  const scanner = new MetadataScanner();
  for (const { controllers, providers } of modules.values()) {
    for (const { metatype } of [...controllers.values(), ...providers.values()]) {
      if (typeof metatype !== 'function' || typeof metatype.prototype !== 'object' || metatype.prototype === null)
        continue;
      const prototype = metatype.prototype as Record<string, object>;
      const handlers = scanner.getAllMethodNames(prototype).map((name) => prototype[name] as object);
      if (!takesMessages(metatype, handlers)) continue;
      for (const target of [metatype, ...handlers]) if (bindsOwnGuard(target)) follow(target);
    }
  }
}

function takesMessages(type: object, handlers: readonly object[]): boolean {
  return (
    Reflect.hasMetadata(GATEWAY, type) || handlers.some((handler) => Reflect.hasMetadata(MESSAGE_HANDLER, handler))
  );
}

function follow(target: object): void {
  const bound = (Reflect.getMetadata(INTERCEPTORS, target) as (NestInterceptor | Type)[] | undefined) ?? [];
  if (!bound.includes(follower)) Reflect.defineMetadata(INTERCEPTORS, [follower, ...bound], target);
}
