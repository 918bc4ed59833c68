import { HttpStatus, Injectable } from '@nestjs/common';
import { declaredOn, lineageOf } from './declared-metadata.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { withinMessages } from '../errors/messages/within.js';
import type { LimitAnswer, LimitSpec } from '../config/limit-definition.js';
import { overloadStatus } from '../http/refusal-answer.js';
import { bindsOtherGuard } from './bound-guards.js';
import { type Handler, isDeclaration } from './declared-class.js';
import { HandlerClasses } from './handler-classes.js';
import { LimitRegistry } from './limit-registry.js';
import { isSource, type DeclarationSite, RouteRules, type RuleSource } from './route-rules.js';
import { ROUTE_OF_CLASS, RouteRule } from './route-rule.js';
import type { Rule } from './rule.js';
import { classNameOf, type HandlerClass, type Declarer, Namespaces } from './namespaces.js';

/** The handlers of calls whose end matters to any app. */
const awaited = new WeakSet<Handler>();

/** Whether the end of a handler's calls matters to any app. */
export function isAwaited(handler: Handler): boolean {
  return awaited.has(handler);
}

/** What is the same for all routes of a class. */
interface DeclaredByClass {
  readonly sites: readonly DeclarationSite[];
  /** Whether the class has guards of its own that may set a user. */
  readonly isGuarded: boolean;
}

/** Makes and keeps the rules of every route at start-up, so that mistakes show there and requests only look them up. */
@Injectable()
export class RouteRulesRegistry {
  /** The rules of middlewares, which run before the route is known. */
  readonly ofMiddleware: RouteRules;
  private readonly byHandler = new WeakMap<HandlerClass, Map<Handler, RouteRules>>();
  private readonly byClass = new WeakMap<HandlerClass, DeclaredByClass>();
  private readonly ofModule: DeclarationSite;
  private hasInterceptor = false;

  constructor(
    private readonly registry: LimitRegistry,
    private readonly classes: HandlerClasses,
    private readonly namespaces: Namespaces,
  ) {
    this.ofModule = { location: 'limits', skips: [], specs: registry.moduleRules };
    this.ofMiddleware = new RouteRules([this.ofModule], false);
  }

  /** The rules of a route. If Nest did not know its class at start-up, they are made on the first request. */
  of(type: HandlerClass, handler: Handler): RouteRules {
    let ofType = this.byHandler.get(type);
    if (ofType === undefined) this.byHandler.set(type, (ofType = new Map()));
    let routeRules = ofType.get(handler);
    if (routeRules === undefined) ofType.set(handler, (routeRules = this.rulesFor(type, handler)));
    return routeRules;
  }

  /**
   * Whether a limit of any route matters after the guards, so that an interceptor must see its requests. Most apps have none, and
   * for a request that an interceptor sees, Nest takes longer than all limits do. Can be called once Nest has found all modules;
   * the answer stays the same.
   */
  needInterceptor(): boolean {
    const needsInterceptor = (spec: LimitSpec) =>
      typeof spec === 'function' || this.registry.anywhere(spec).needsInterceptor;
    try {
      this.hasInterceptor =
        this.registry.moduleRules.some((rule) => rule.needsInterceptor) ||
        this.classes.declared().some(({ specs }) => specs.some(needsInterceptor));
    } catch {
      // The check at start-up refuses the mistakes in them.
      this.hasInterceptor = true;
    }
    return this.hasInterceptor;
  }

  /** The statuses of refusals by the limits that a route has or may get; empty if there are none. */
  refusalStatuses(type: HandlerClass, handler: Handler): ReadonlySet<number> {
    const statuses = new Map<unknown, number>(this.registry.moduleRules.map((rule) => [rule.name, statusOf(rule)]));
    for (const target of [...lineageOf(type), handler]) {
      const { specs, skips } = declaredOn(target);
      if (skips === 'all') statuses.clear();
      else for (const name of skips) statuses.delete(name);
      for (const spec of specs) {
        const rule = this.ruleOf(spec);
        // A function that chooses limits stands for itself: it cannot be skipped by name.
        statuses.set(rule?.name ?? spec, rule === undefined ? HttpStatus.TOO_MANY_REQUESTS : statusOf(rule));
      }
    }
    return new Set(statuses.values());
  }

  /** What is known about a limit, perhaps before all are defined. */
  private ruleOf(spec: LimitSpec): Rule | undefined {
    if (typeof spec === 'function' || (typeof spec === 'string' && !this.registry.has(spec))) return undefined;
    try {
      return this.registry.anywhere(spec);
    } catch {
      // The check at start-up refuses the mistakes in it.
      return undefined;
    }
  }

  private rulesFor(type: HandlerClass, handler: Handler): RouteRules {
    const method = this.classes.nameOf(type, handler);
    const location = `@RateLimit on ${classNameOf(type)}.${method ?? (handler as Function).name}`;
    const declarer = { type, ...(method !== undefined && { method }) };
    const { sites: ofClass, isGuarded } = this.ofClass(type);
    const sites = [
      this.ofRoute(this.ofModule, '', declarer),
      ...ofClass.map((site) => this.ofRoute(site, ROUTE_OF_CLASS, declarer)),
      this.site(location, handler, declarer),
    ];
    this.refuseIdleSkips(sites);
    const routeRules = new RouteRules(sites, isGuarded || bindsOtherGuard(handler));
    if (routeRules.needsInterceptor && !this.hasInterceptor) {
      throw new RateLimitConfigError(messages.noInterceptor(location));
    }
    if (routeRules.waitsForEnd || this.ofMiddleware.middlewareWaitsForEnd) awaited.add(handler);
    return routeRules;
  }

  /** The declarations of a site as they are for one route: of some limits, each route has its own counter. */
  private ofRoute(site: DeclarationSite, prefix: string, declarer: Declarer): DeclarationSite {
    const { specs } = site;
    if (!specs.some(isPerRoute)) return site;
    const namespace = prefix + this.namespaces.of(declarer);
    return { ...site, specs: specs.map((spec) => (isPerRoute(spec) ? new RouteRule(spec, namespace) : spec)) };
  }

  private ofClass(type: HandlerClass): DeclaredByClass {
    let known = this.byClass.get(type);
    if (known === undefined) {
      this.byClass.set(type, (known = { sites: this.sitesOf(type), isGuarded: bindsOtherGuard(type) }));
    }
    return known;
  }

  /** The limits declared by a class and its superclasses. */
  sitesOf(type: HandlerClass): DeclarationSite[] {
    return lineageOf(type)
      .filter((target) => target === type || isDeclaration(declaredOn(target)))
      .map((target) => this.site(`@RateLimit on ${classNameOf(target as HandlerClass)}`, target, { type }));
  }

  private site(location: string, target: object, declarer: Declarer): DeclarationSite {
    const { specs, skips } = declaredOn(target);
    return { location, skips, specs: specs.map((spec) => this.compile(spec, location, declarer)) };
  }

  private compile(spec: LimitSpec, location: string, declarer: Declarer): Rule | RuleSource {
    if (typeof spec === 'string') {
      const rule = this.registry.rule(spec, { location, namespace: '' });
      rule.isOnRoute = true;
      return rule;
    }
    const namespace = this.namespaces.of(declarer);
    if (typeof spec !== 'function') {
      return this.registry.rule(spec, { location, namespace, onRoutes: true });
    }
    return {
      ask: spec,
      rules: (answer: LimitAnswer) => {
        if (answer === undefined) throw new RateLimitConfigError(messages.noAnswer(location));
        const limits = Array.isArray(answer) ? answer : answer === null ? [] : [answer];
        return limits.map((limit: Exclude<LimitSpec, Function>) => this.registry.rule(limit, { location, namespace }));
      },
    };
  }

  private refuseIdleSkips(sites: readonly DeclarationSite[]): void {
    if (sites.every(({ skips }) => skips.length === 0)) return;
    const known = new Set(this.registry.names);
    let outer: Rule[] = [];
    for (const { location, skips, specs } of sites) {
      const place = location.replace('@RateLimit', '@SkipRateLimit');
      const unknown = skips === 'all' ? undefined : skips.find((name) => !known.has(name));
      if (unknown !== undefined) {
        throw new RateLimitConfigError(messages.skipsNothing(place, unknown, [...known]));
      }
      outer = skips === 'all' ? [] : outer.filter(({ name }) => !skips.includes(name));
      for (const { name, ancestors } of outer) {
        const parent = ancestors.find((ancestor) => skips.includes(ancestor.name));
        if (parent !== undefined) throw new RateLimitConfigError(withinMessages.skipsParent(place, name, parent.name));
      }
      // A function may return limits of any name.
      if (specs.some(isSource)) return;
      for (const spec of specs) {
        if (isSource(spec)) continue;
        known.add(spec.name);
        outer.push(spec);
      }
    }
  }
}

function isPerRoute(spec: DeclarationSite['specs'][number]): spec is Rule {
  return !isSource(spec) && spec.perRoute;
}

function statusOf({ limit }: Rule): number {
  return overloadStatus(limit) ?? HttpStatus.TOO_MANY_REQUESTS;
}
