import { Injectable } from '@nestjs/common';
import { MetadataScanner, ModulesContainer } from '@nestjs/core';
import { declaredOn, isLost, lineageOf } from './declared-metadata.js';
import { limitersOf } from '../config/limiter-tokens.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import type { LimitAnswer, LimitDefinition, LimitSpec } from '../config/limit-definition.js';
import { bindsOtherGuard, bindsOwnGuard } from './bound-guards.js';
import { GuardCheck } from './guard-check.js';
import { LimitRegistry } from './limit-registry.js';
import { isSource, type DeclaredLevel, Plan, type RuleSource } from './plan.js';
import { isGateway, isHandler, resolvesField } from './route-names.js';
import { type Rule } from './rule.js';
import { classNameOf, type HandlerClass, type Declarer, Namespaces } from './namespaces.js';

type Handler = object;

/** Knows the plan of every route. Plans are made at start-up, so that mistakes show there and requests only look them up. */
@Injectable()
export class PlanRegistry {
  private readonly plans = new WeakMap<HandlerClass, Map<Handler, Plan>>();
  private hasInterceptor = false;

  constructor(
    private readonly registry: LimitRegistry,
    private readonly modules: ModulesContainer,
    private readonly scanner: MetadataScanner,
    private readonly namespaces: Namespaces,
    private readonly guards: GuardCheck,
  ) {}

  /** The plan of a route. One of a class that Nest did not know of at start-up is made on its first request. */
  of(type: HandlerClass, handler: Handler): Plan {
    let plans = this.plans.get(type);
    if (plans === undefined) this.plans.set(type, (plans = new Map()));
    let plan = plans.get(handler);
    if (plan === undefined) plans.set(handler, (plan = this.plan(type, handler)));
    return plan;
  }

  /**
   * Whether a limit of any route matters after the guards, so that an interceptor has to see its requests: most apps have none,
   * and Nest takes longer for a request that an interceptor sees than all limits do. Can be asked once Nest has found all
   * modules; the answer is kept to.
   */
  needInterceptor(): boolean {
    const goesOn = (spec: LimitSpec) =>
      typeof spec === 'function' || this.registry.rule(spec, { location: '', namespace: '' }).needsInterceptor;
    try {
      this.hasInterceptor =
        this.registry.moduleRules.some((rule) => rule.needsInterceptor) ||
        this.classes().some((type) => this.targets(type).some((target) => declaredOn(target).specs.some(goesOn)));
    } catch {
      // What is wrong with them is told at start-up.
      this.hasInterceptor = true;
    }
    return this.hasInterceptor;
  }

  /** Makes all plans of the app. Throws `RateLimitConfigError` for what no request could be checked against. */
  prepare(): void {
    for (const module of this.modules.values()) {
      for (const { metatype, inject } of [...module.controllers.values(), ...module.providers.values()]) {
        this.refuseUnknownLimiters(metatype, inject);
      }
    }
    const classes = this.classes();
    this.namespaces.assign(classes.flatMap((type) => this.declarers(type)));
    for (const type of classes) {
      // Also for a controller without routes, whose own limits would else go unread.
      this.levelsOf(type);
      for (const method of this.lostMethods(type)) {
        throw new RateLimitConfigError(messages.lostMethod(`@RateLimit on ${classNameOf(type)}.${method}`));
      }
      for (const handler of this.handlers(type).values()) if (isRoute(handler)) this.of(type, handler);
    }
    if (!this.guards.isEverywhere) this.refuseUnguarded(classes);
    if (this.guards.isEnabled) this.refuseUnreached(classes);
    this.guards.warnOfFields(classes.flatMap((type) => this.fields(type)));
    // Where the guard has nothing to check, its place does not matter.
    if (classes.some((type) => this.plansOf(type).some(({ isEmpty }) => !isEmpty))) this.guards.warnOfEarlier();
  }

  /** Whether a route has limits, or may be given some. */
  mayLimit(type: HandlerClass, handler: Handler): boolean {
    const names = new Set<unknown>(this.registry.moduleRules.map(({ name }) => name));
    for (const target of [...lineageOf(type), handler]) {
      const { specs, skips } = declaredOn(target);
      if (skips === 'all') names.clear();
      else for (const name of skips) names.delete(name);
      // A function that chooses limits stands for itself: it cannot be skipped by a name.
      for (const spec of specs) names.add(typeof spec === 'object' ? this.nameOf(spec) : spec);
    }
    return names.size > 0;
  }

  private nameOf(definition: LimitDefinition): unknown {
    try {
      return this.registry.rule(definition, { location: '', namespace: '' }).name;
    } catch {
      // What is wrong with it is told at start-up.
      return definition;
    }
  }

  /** All controllers, and all providers that declare limits or, where each route counts for itself, have any. */
  private classes(): HandlerClass[] {
    const types = [...this.modules.values()].flatMap(({ controllers, providers }) => [
      ...[...controllers.values()].map(({ metatype }) => metatype).filter(isClass),
      ...[...providers.values()].map(({ metatype }) => metatype).filter((type) => isClass(type) && this.matters(type)),
    ]);
    return [...new Set(types as HandlerClass[])];
  }

  /** What of a class needs a scope: limits of a name share their counters by that. */
  private declarers(type: HandlerClass): Declarer[] {
    const { countsPerRoute: perRoute } = this;
    const methods = [...this.handlers(type)].filter(
      ([, handler]) => declaresOwn(handler) || (perRoute && isRoute(handler)),
    );
    return [...(lineageOf(type).some(declaresOwn) ? [{ type }] : []), ...methods.map(([method]) => ({ type, method }))];
  }

  private plansOf(type: HandlerClass): Plan[] {
    return [...this.handlers(type).values()].filter(isRoute).map((handler) => this.of(type, handler));
  }

  private refuseUnguarded(classes: readonly HandlerClass[]): void {
    const unguarded = classes.flatMap((type) => this.unguarded(type));
    if (unguarded.length > 0) throw new RateLimitConfigError(messages.unguarded(unguarded));
    if (this.registry.moduleRules.every(({ phase }) => phase === 'middleware')) return;
    const types = [...this.modules.values()].flatMap(({ controllers, providers }) =>
      [...controllers.values(), ...providers.values()].map(({ metatype }) => metatype),
    );
    const bound = types.some((type) => isClass(type) && [type, ...this.handlers(type).values()].some(bindsOwnGuard));
    if (!bound) throw new RateLimitConfigError(messages.unguarded(["the module's 'limits'"]));
  }

  /** Refuses limits where Nest calls no guard, though one is bound. */
  private refuseUnreached(classes: readonly HandlerClass[]): void {
    if (this.guards.reachesGateways) return;
    const gateways = classes.filter(isGateway).flatMap((type) => this.unguarded(type));
    if (gateways.length > 0) throw new RateLimitConfigError(messages.unreachedGateways(gateways));
  }

  /** The fields of GraphQL types that declare limits. */
  private fields(type: HandlerClass): string[] {
    return [...this.handlers(type)]
      .filter(([, handler]) => resolvesField(type, handler) && declaredOn(handler).specs.length > 0)
      .map(([method]) => `${classNameOf(type)}.${method}`);
  }

  private unguarded(type: HandlerClass): string[] {
    if (bindsOwnGuard(type)) return [];
    const ofClass = lineageOf(type).some((target) => declaredOn(target).specs.length > 0);
    return [...this.handlers(type)]
      .filter(([, handler]) => (ofClass ? isRoute(handler) : declaredOn(handler).specs.length > 0))
      .filter(([, handler]) => !this.of(type, handler).isEmpty && !bindsOwnGuard(handler))
      .map(([method]) => `${classNameOf(type)}.${method}`);
  }

  private plan(type: HandlerClass, handler: Handler): Plan {
    const method = [...this.handlers(type)].find(([, each]) => each === handler)?.[0];
    const name = `${classNameOf(type)}.${method ?? (handler as Function).name}`;
    const declarer = { type, ...(method !== undefined && { method }) };
    const everywhere = this.registry.moduleRules.map((rule) =>
      rule.perRoute ? rule.within(this.namespaces.of(declarer)) : rule,
    );
    const levels = [
      { location: 'limits', skips: [], specs: everywhere },
      ...this.levelsOf(type),
      this.level(`@RateLimit on ${name}`, handler, declarer),
    ];
    this.refuseIdleSkips(levels);
    const plan = new Plan(levels, bindsOtherGuard(type) || bindsOtherGuard(handler));
    if (plan.needsInterceptor && !this.hasInterceptor) {
      throw new RateLimitConfigError(messages.noInterceptor(`@RateLimit on ${name}`));
    }
    return plan;
  }

  /** What a class declares, and the classes that it extends. */
  private levelsOf(type: HandlerClass): DeclaredLevel[] {
    return lineageOf(type)
      .filter((target) => target === type || declares(target))
      .map((target) => this.level(`@RateLimit on ${classNameOf(target as HandlerClass)}`, target, { type }));
  }

  private level(location: string, target: object, declarer: Declarer): DeclaredLevel {
    const { specs, skips } = declaredOn(target);
    return { location, skips, specs: specs.map((spec) => this.compile(spec, location, declarer)) };
  }

  private compile(spec: LimitSpec, location: string, declarer: Declarer): Rule | RuleSource {
    if (typeof spec === 'string') return this.registry.rule(spec, { location, namespace: '' });
    if (typeof spec !== 'function')
      return this.registry.rule(spec, { location, namespace: this.namespaces.of(declarer) });
    const namespace = this.namespaces.of(declarer);
    return {
      ask: spec,
      rules: (answer: LimitAnswer) => {
        if (answer === undefined) throw new RateLimitConfigError(messages.noAnswer(location));
        const limits = Array.isArray(answer) ? answer : answer === null ? [] : [answer];
        return limits.map((limit: Exclude<LimitSpec, Function>) => this.registry.rule(limit, { location, namespace }));
      },
    };
  }

  private refuseIdleSkips(levels: readonly DeclaredLevel[]): void {
    const known = new Set(this.registry.names);
    for (const { location, skips, specs } of levels) {
      const unknown = skips === 'all' ? undefined : skips.find((name) => !known.has(name));
      if (unknown !== undefined) {
        throw new RateLimitConfigError(
          messages.skipsNothing(location.replace('@RateLimit', '@SkipRateLimit'), unknown, [...known]),
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

  private get countsPerRoute(): boolean {
    return this.registry.moduleRules.some(({ perRoute }) => perRoute);
  }

  private matters(type: HandlerClass): boolean {
    if (this.targets(type).some(declares) || this.lostMethods(type).length > 0) return true;
    return this.countsPerRoute && [...this.handlers(type).values()].some(isHandler);
  }

  /** The routes whose limits stand on functions that nobody calls any more. */
  private lostMethods(type: HandlerClass): string[] {
    const routes = [...this.handlers(type)].filter(([, handler]) => isRoute(handler));
    return routes.map(([method]) => method).filter((method) => isLost(type.prototype as object, method));
  }

  /** All that decorators of a route may stand on. */
  private targets(type: HandlerClass): object[] {
    return [...lineageOf(type), ...this.handlers(type).values()];
  }

  /** The methods of a class by their names. A wrapped method may have lost its own. */
  private handlers(type: HandlerClass): Map<string, Handler> {
    const prototype = type.prototype as Record<string, Handler>;
    const names = this.scanner.getAllMethodNames(prototype);
    return new Map(names.map((name) => [name, prototype[name] as Handler]));
  }
}

function declares(target: object): boolean {
  const { specs, skips } = declaredOn(target);
  return specs.length > 0 || skips.length > 0;
}

/** Whether some of what is declared has no name that its counters are known by. */
function declaresOwn(target: object): boolean {
  return declaredOn(target).specs.some((spec) => typeof spec !== 'string');
}

/** Whether other decorators than ours stand on a method, as those do that make it a route. */
function isRoute(handler: Handler): boolean {
  return Reflect.getMetadataKeys(handler).length > 0;
}

function isClass(type: object | null): type is HandlerClass {
  return typeof type === 'function' && typeof type.prototype === 'object' && type.prototype !== null;
}
