import { Injectable } from '@nestjs/common';
import { MetadataScanner, ModulesContainer } from '@nestjs/core';
import { declaredOn } from '../decorators/metadata.js';
import { limitersOf } from '../decorators/inject-limiter.decorator.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import type { LimitDefinition, LimitSpec } from '../limit-definition.js';
import { LimitRegistry } from './limit-registry.js';
import { isSource, type Place, Plan, type RuleSource } from './plan.js';
import { type Rule } from './rule.js';

/** A controller, or a provider whose methods are called like one's (a resolver, a gateway). */
type HandlerClass = abstract new (...args: never[]) => unknown;
type Handler = object;

/** Marks our own guard, which finds no user. */
export const OWN_GUARD = 'nestjs-sluice:guard';

/** Where `@UseGuards` keeps what it was given, in Nest 11 and 12. */
const GUARDS = '__guards__';

/** Knows the plan of every route. Plans are made at start-up, so that mistakes show there and requests only look them up. */
@Injectable()
export class PlanRegistry {
  private readonly plans = new WeakMap<HandlerClass, Map<Handler, Plan>>();

  constructor(
    private readonly registry: LimitRegistry,
    private readonly modules: ModulesContainer,
    private readonly scanner: MetadataScanner,
  ) {}

  /** The plan of a route. One that a lazily loaded module brings is made on its first request. */
  of(type: HandlerClass, handler: Handler): Plan {
    let plans = this.plans.get(type);
    if (plans === undefined) this.plans.set(type, (plans = new Map()));
    let plan = plans.get(handler);
    if (plan === undefined) plans.set(handler, (plan = this.plan(type, handler)));
    return plan;
  }

  /** Makes all plans of the app. Throws `RateLimitConfigError` for what no request could be checked against. */
  prepare(): void {
    const scopes = new Map<string, HandlerClass>();
    for (const module of this.modules.values()) {
      for (const { metatype, inject } of [...module.controllers.values(), ...module.providers.values()]) {
        this.refuseUnknownLimiters(metatype, inject);
      }
      const controllers = [...module.controllers.values()].map(({ metatype }) => metatype);
      const providers = [...module.providers.values()].map(({ metatype }) => metatype);
      for (const type of [...controllers, ...providers.filter((each) => isClass(each) && this.declares(each))]) {
        if (isClass(type)) this.prepareClass(type, scopes);
      }
    }
  }

  /** Whether a route has limits, or may be given some. Can be asked before all limits are defined: then it takes them by their names. */
  mayLimit(type: HandlerClass, handler: Handler): boolean {
    const names = new Set<unknown>(this.registry.moduleRules.map(({ name }) => name));
    for (const target of [type, handler]) {
      const { specs, skips } = declaredOn(target);
      if (skips === 'all') names.clear();
      else for (const name of skips) names.delete(name);
      // A function that chooses limits stands for itself: it cannot be skipped by a name.
      for (const spec of specs) names.add(typeof spec === 'object' ? this.nameOf(spec, type) : spec);
    }
    return names.size > 0;
  }

  private nameOf(definition: LimitDefinition, type: HandlerClass): unknown {
    try {
      return this.registry.rule(definition, { place: '', scope: type.name }).name;
    } catch {
      // What is wrong with it is told at start-up.
      return definition;
    }
  }

  private prepareClass(type: HandlerClass, scopes: Map<string, HandlerClass>): void {
    const handlers = this.handlers(type);
    if (
      [type, ...handlers.values()].some((target) => declaredOn(target).specs.some((spec) => typeof spec !== 'string'))
    ) {
      const other = scopes.get(type.name);
      if (other !== undefined && other !== type) throw new RateLimitConfigError(messages.sameScope(type.name));
      scopes.set(type.name, type);
    }
    // Also for a controller without routes, whose own limits would else go unread.
    this.place(`@RateLimit on ${type.name}`, type.name, type);
    for (const handler of handlers.values()) this.of(type, handler);
  }

  private plan(type: HandlerClass, handler: Handler): Plan {
    const method = [...this.handlers(type)].find(([, each]) => each === handler)?.[0] ?? (handler as Function).name;
    const name = `${type.name}.${method}`;
    const places = [
      { place: 'limits', skips: [], specs: this.registry.moduleRules },
      this.place(`@RateLimit on ${type.name}`, type.name, type),
      this.place(`@RateLimit on ${name}`, name, handler),
    ];
    this.refuseIdleSkips(places);
    return new Plan(places, isGuarded(type) || isGuarded(handler));
  }

  private place(place: string, scope: string, target: object): Place {
    const { specs, skips } = declaredOn(target);
    return { place, skips, specs: specs.map((spec) => this.compile(spec, place, scope)) };
  }

  private compile(spec: LimitSpec, place: string, scope: string): Rule | RuleSource {
    if (typeof spec !== 'function') return this.registry.rule(spec, { place, scope });
    return {
      ask: spec,
      rules: (answer) => {
        const limits = Array.isArray(answer) ? answer : answer === null || answer === undefined ? [] : [answer];
        return limits.map((limit: Exclude<LimitSpec, Function>) => this.registry.rule(limit, { place, scope }));
      },
    };
  }

  private refuseIdleSkips(places: readonly Place[]): void {
    const known = new Set(this.registry.names);
    for (const { place, skips, specs } of places) {
      const unknown = skips === 'all' ? undefined : skips.find((name) => !known.has(name));
      if (unknown !== undefined) {
        throw new RateLimitConfigError(
          messages.skipsNothing(place.replace('@RateLimit', '@SkipRateLimit'), unknown, [...known]),
        );
      }
      // A function may give limits of any name.
      if (specs.some(isSource)) return;
      for (const spec of specs) if (!isSource(spec)) known.add(spec.name);
    }
  }

  private refuseUnknownLimiters(type: object | null, inject: readonly unknown[] | null | undefined): void {
    for (const name of limitersOf(type, inject)) {
      if (this.registry.has(name)) continue;
      const className = (type as Function | null)?.name ?? 'a factory';
      throw new RateLimitConfigError(messages.injectsUnknown(className || 'a factory', name, this.registry.names));
    }
  }

  private declares(type: HandlerClass): boolean {
    return [type, ...this.handlers(type).values()].some((target) => {
      const { specs, skips } = declaredOn(target);
      return specs.length > 0 || skips.length > 0;
    });
  }

  /** The methods of a class by their names. A wrapped method may have lost its own. */
  private handlers(type: HandlerClass): Map<string, Handler> {
    const prototype = type.prototype as Record<string, Handler>;
    const names = this.scanner.getAllMethodNames(prototype);
    return new Map(names.map((name) => [name, prototype[name] as Handler]));
  }
}

function isClass(type: object | null): type is HandlerClass {
  return typeof type === 'function' && typeof type.prototype === 'object' && type.prototype !== null;
}

function isGuarded(target: object): boolean {
  const guards = (Reflect.getMetadata(GUARDS, target) as object[] | undefined) ?? [];
  return guards.some((guard) => {
    const type = typeof guard === 'function' ? guard : guard.constructor;
    return Reflect.getMetadata(OWN_GUARD, type) !== true;
  });
}
