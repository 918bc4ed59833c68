import 'reflect-metadata';
import { Inject } from '@nestjs/common';
import type { LimitDefinition } from '../../app/config/limit-definition.js';
import { isLimit } from '../../app/limiter/limit-checks.js';
import { configError, RateLimitConfigError } from '../../engine/errors/errors.js';
import { methodMessages } from '../../engine/errors/messages/app-code.js';
import { askMessages } from '../../engine/errors/messages/calls.js';
import { addSite, callsOf, keepCalls, LIMITED_METHOD, LimitedCalls, LimitedMethodSite } from './limited-calls.js';
import {
  type LimitedDecorator,
  type LimitedMethod,
  type LimitedOptions,
  readLimitedOptions,
  type SkippedDecorator,
} from './limited-options.js';

/** Classes into which Nest injects the limits of their app. */
const injected = new WeakSet<object>();

/**
 * Limits calls of a method, of any class that Nest creates. Calls of all instances and processes count together, per `key`. The method
 * always returns a promise. The app doesn't start if no limit has the name. Several limits of a method are checked one after the
 * other, the uppermost first.
 *
 * @example
 * ```ts
 * @Limited<Mailer['send']>('mails', { key: (user) => `user:${user.id}`, onLimit: 'wait' })
 * async send(user: User) {}
 * ```
 * @param limit the name of a defined limit, or a limit
 * @param options the key, the units, and what happens to a call that exceeds the limit. Throws `RateLimitConfigError`
 */
export function Limited<Method extends LimitedMethod = LimitedMethod>(
  limit: string | LimitDefinition,
  options: LimitedOptions<Method> & { onLimit: 'skip' },
): SkippedDecorator<Method>;
/** Limits calls of a method, of any class that Nest creates. */
export function Limited<Method extends LimitedMethod = LimitedMethod>(
  limit: string | LimitDefinition,
  options?: LimitedOptions<Method> & { onLimit?: 'throw' | 'wait' | undefined },
): LimitedDecorator<Method>;
export function Limited(
  limit: string | LimitDefinition,
  options: LimitedOptions = {},
): (target: object, name: string | symbol, descriptor: TypedPropertyDescriptor<LimitedMethod>) => void {
  return (target, name, descriptor: TypedPropertyDescriptor<LimitedMethod> | undefined) => {
    const isStatic = typeof target === 'function';
    const type = isStatic ? target : target.constructor;
    const location = `@Limited on ${type.name || 'a class without a name'}.${String(name)}`;
    if (isStatic) throw configError('SLUICE_NOT_INJECTED', methodMessages.isStatic(location));
    const method: unknown = descriptor?.value;
    if (typeof method !== 'function') throw new RateLimitConfigError(methodMessages.noMethod(location, method));
    if (!isLimit(limit)) throw configError('SLUICE_INVALID_LIMIT', askMessages.noLimits(location, limit));
    const site = new LimitedMethodSite(location, type.name, String(name), limit, readLimitedOptions(options, location));
    addSite(target, site);
    if (!injected.has(target)) {
      injected.add(target);
      // Nest names the property if an app has no such provider.
      const property = Symbol(methodMessages.nowhere(location));
      keepCalls(target, property);
      Inject(LimitedCalls)(target, property);
    }
    const limited = likeOriginal(method, async function (this: unknown, ...args) {
      const calls = callsOf(this, site);
      const run = (): unknown => method.apply(this, args);
      return calls === undefined ? run() : site.run(calls.limiterOf(site), args, run);
    });
    const below = (Reflect.getOwnMetadata(LIMITED_METHOD, method) ?? []) as readonly LimitedMethodSite[];
    Reflect.defineMetadata(LIMITED_METHOD, [site, ...below], limited);
    descriptor!.value = limited;
  };
}

/** Gives a function the name, the parameters and the metadata of the one that it replaces, for decorators above it. */
function likeOriginal(original: Function, wrapper: LimitedMethod): LimitedMethod {
  for (const key of Reflect.ownKeys(original)) {
    if (key === 'prototype') continue;
    Object.defineProperty(wrapper, key, Object.getOwnPropertyDescriptor(original, key)!);
  }
  for (const key of Reflect.getOwnMetadataKeys(original) as unknown[]) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, original), wrapper);
  }
  return wrapper;
}
