import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { ModuleRef, ModulesContainer } from '@nestjs/core';
import type { LimitDefinition } from '../../app/config/limit-definition.js';
import { RateLimitExceededException } from '../../app/http/rate-limit.exceptions.js';
import type { LeasedDecision } from '../../app/limiter/lease.js';
import { foundCost, foundKey, refuseWrongList } from '../../app/limiter/limit-checks.js';
import type { Limiter } from '../../app/limiter/limiter.js';
import type { Declaration } from '../../app/rules/declaration.js';
import { lineageOf } from '../../app/rules/declared-metadata.js';
import { LimitRegistry } from '../../app/rules/limit-registry.js';
import { writtenName } from '../../app/rules/namespaces.js';
import { configError, RateLimitConfigError } from '../../engine/errors/errors.js';
import { methodMessages } from '../../engine/errors/messages/app-code.js';
import { LongTimeout } from '../../engine/util/long-timeout.js';
import { LimiterService } from '../limiter.service.js';
import type { LimitedSettings } from './limited-options.js';
import { getOrMake } from '../../engine/util/objects.js';

/** The property of an instance that has the limits of its app. A `WeakMap` would miss proxies of the instance. */
const CALLS = Symbol('nestjs-sluice:LimitedCalls');

/** The methods of a prototype that are limited. */
const sites = new WeakMap<object, LimitedMethodSite[]>();
/** True once any class has a limited method. */
let isUsed = false;

/** The apps of this process, until they close. */
const running = new Set<LimitedCalls>();

/** Limits methods of one app. It needs no other provider: what any provider needs may have limited methods itself. */
@Injectable()
export class LimitedCalls implements OnModuleInit, OnModuleDestroy {
  private readonly limiters = new Map<LimitedMethodSite, Limiter>();

  constructor(
    private readonly module: ModuleRef,
    private readonly modules: ModulesContainer,
  ) {
    running.add(this);
  }

  /** Called by Nest: refuses limits that no call could be checked against. Throws `RateLimitConfigError`. */
  onModuleInit(): void {
    if (!isUsed) return;
    for (const { providers, controllers, injectables } of this.modules.values()) {
      for (const wrapper of [...providers.values(), ...controllers.values(), ...injectables.values()]) {
        const instance: unknown =
          wrapper.isDependencyTreeStatic() && !wrapper.isTransient ? wrapper.instance : undefined;
        const found = [...sitesOf(prototypeOf(wrapper.metatype)), ...sitesOf(instance)];
        for (const site of found) this.limiterOf(site);
        if (found.length > 0) belongTo(instance, this);
      }
    }
  }

  onModuleDestroy(): void {
    running.delete(this);
  }

  /** True if a module of the app lists a class with this method. */
  lists(site: LimitedMethodSite): boolean {
    return this.limiters.has(site);
  }

  /** The limiter of a method. Throws `RateLimitConfigError`. */
  limiterOf(site: LimitedMethodSite): Limiter {
    let limiter = this.limiters.get(site);
    if (limiter === undefined) this.limiters.set(site, (limiter = this.makeLimiter(site)));
    return limiter;
  }

  private makeLimiter({ limit, location, className, settings, isNamed, declaration }: LimitedMethodSite): Limiter {
    const service = this.module.get(LimiterService, { strict: false });
    // Until its turn comes, Nest has an object of the class that no constructor has set up.
    if (!Object.hasOwn(service, 'decisions$')) throw notInjected(methodMessages.tooEarly(location));
    if (!isNamed && writtenName({ name: className }) === undefined)
      throw configError('SLUICE_INVALID_NAMESPACE', methodMessages.needsName(location));
    const rule = this.module.get(LimitRegistry, { strict: false }).rule(limit, declaration);
    refuseWrongList([rule], location);
    const { hasKey, key } = rule.settings;
    if (settings.key === undefined && hasKey === true && key.given !== ALL_CALLS) {
      throw configError('SLUICE_MISSING_OPTION', methodMessages.needsKey(location, rule.name, key.given));
    }
    return service.ofRule(rule);
  }
}

/** Records a limited method of a prototype. */
export function addSite(prototype: object, site: LimitedMethodSite): void {
  isUsed = true;
  getOrMake(sites, prototype, () => []).push(site);
}

/** Lets instances of a class and of its subclasses keep the limits of the app that sets this property. */
export function keepCalls(prototype: object, property: symbol): void {
  Object.defineProperty(prototype, property, {
    configurable: true,
    set(this: object, calls: unknown) {
      belongTo(this, calls);
    },
  });
}

/** The limits of the app of an instance; `undefined` if a test has replaced them. Throws `RateLimitConfigError`. */
export function callsOf(instance: unknown, site: LimitedMethodSite): LimitedCalls | undefined {
  const { location } = site;
  const own: unknown = (instance as { [CALLS]?: unknown } | undefined)?.[CALLS];
  if (own !== undefined) return own instanceof LimitedCalls ? own : undefined;
  // Made by a function, perhaps for one request: only a second app that lists the class makes it unclear.
  const listing = [...running].filter((calls) => calls.lists(site));
  const [first, ...others] = listing.length > 0 ? listing : running;
  if (first === undefined) throw notInjected(methodMessages.noApp(location));
  if (others.length > 0) throw notInjected(methodMessages.severalApps(location));
  return first;
}

function notInjected(message: string): RateLimitConfigError {
  return configError('SLUICE_NOT_INJECTED', message);
}

function belongTo(instance: unknown, calls: unknown): void {
  if (typeof instance !== 'object' || instance === null) return;
  Reflect.defineProperty(instance, CALLS, { value: calls, configurable: true });
}

/** The limited methods of a prototype or an instance, and of the classes that it extends. */
function sitesOf(from: unknown): LimitedMethodSite[] {
  if (typeof from !== 'object' || from === null) return [];
  return lineageOf(from).flatMap((prototype) => sites.get(prototype) ?? []);
}

function prototypeOf(type: unknown): unknown {
  return typeof type === 'function' ? type.prototype : undefined;
}

/** The key of a counter for all calls, as limits with `key: 'global'` have it. */
export const ALL_CALLS = 'global';

/** Metadata of a limited method: its uses of `@Limited`, the uppermost first. Another copy of the package may have written it. */
export const LIMITED_METHOD = 'nestjs-sluice:limited-method';

/** One use of `@Limited`. */
export class LimitedMethodSite {
  constructor(
    /** Where it is, for messages. */
    readonly location: string,
    readonly className: string,
    readonly method: string,
    readonly limit: string | LimitDefinition,
    readonly settings: LimitedSettings,
  ) {}

  /** True if its limit has a name, and so one counter for all that use it. */
  get isNamed(): boolean {
    return typeof this.limit === 'string' || this.limit.name !== undefined;
  }

  /** Where its limit is declared. An unnamed limit counts per method. */
  get declaration(): Declaration {
    const { location, className, method } = this;
    return { location, namespace: this.isNamed ? '' : `method ${className}.${method}` };
  }

  /** Runs a method with units of its limit. Until the first `await`, calls are in the order in which they were made. */
  async run(limiter: Limiter, args: unknown[], method: () => unknown): Promise<unknown> {
    const decision = await this.take(limiter, args);
    if (!decision.allowed) {
      if (this.settings.onLimit === 'skip') return undefined;
      const { delayMs, levels = [decision] } = decision;
      throw new RateLimitExceededException({ allowed: false, decisions: levels, tightest: decision, delayMs });
    }
    const lease = decision.lease?.keepAlive();
    try {
      const { delayMs } = decision;
      if (delayMs > 0) await new Promise<void>((resolve) => void new LongTimeout(delayMs, resolve));
      return await method();
    } finally {
      await lease?.release();
    }
  }

  private take(limiter: Limiter, args: unknown[]): Promise<LeasedDecision> {
    const { key: keyOf, cost: costOf, onLimit, timeout, signal } = this.settings;
    const { location } = this;
    const { name } = limiter;
    const key = keyOf === undefined ? ALL_CALLS : foundKey(keyOf(...args), location, name);
    const cost = typeof costOf === 'function' ? foundCost(costOf(...args), location, name) : costOf;
    if (onLimit !== 'wait') return limiter.consume(key, cost);
    return limiter.acquire(key, { cost, timeout, signal: signal?.(...args) });
  }
}
