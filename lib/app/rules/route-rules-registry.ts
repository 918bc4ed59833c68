import { HttpStatus, Injectable } from '@nestjs/common';
import { declaredOn, lineageOf } from './declared-metadata.js';
import { configError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { withinMessages } from '../../engine/errors/messages/calls.js';
import { ROUTE_OF_CLASS } from '../../engine/limits/limit-settings.js';
import { getOrMake } from '../../engine/util/objects.js';
import { isFixed, type LimitSpec } from '../config/limits-by-request.js';
import { overloadStatus } from '../http/refusal-answer.js';
import { bindsOtherGuard, GuardCheck } from './guard-check.js';
import {
  type DeclaredMethod,
  type Handler,
  HandlerClasses,
  isDeclaration,
  type PlacedSpec,
} from './handler-classes.js';
import { type LimitSource, LimitSources } from './by-request/limit-sources.js';
import type { Declaration } from './declaration.js';
import { LimitRegistry, placeInModule } from './limit-registry.js';
import { type DeclarationSite, isSource, RouteRule, RouteRules } from './route-rules.js';
import { isHttpRoute } from './route-names.js';
import { RoutePaths } from './route-paths.js';
import { Rule } from './rule.js';
import { classNameOf, type HandlerClass, type Declarer, locationOf, Namespaces } from './namespaces.js';

type Spec = Rule | LimitSource;

/** The handlers for which any app in the process needs the end of a call. */
const awaited = new WeakSet<Handler>();

/** Returns true if any app in the process needs the end of the handler's calls. */
export function isAwaited(handler: Handler): boolean {
  return awaited.has(handler);
}

interface DeclaredByClass {
  readonly sites: readonly DeclarationSite[];
  /** True if neither the module nor the class declares anything for the routes of the class. */
  readonly declaresNothing: boolean;
  /** True if the class has its own guards, which may set a user. */
  readonly isGuarded: boolean;
}

/** Checks the limits of every route at start-up, so that errors show there. Caches the rules of each route, which requests only look up. */
@Injectable()
export class RouteRulesRegistry {
  /** The rules of middlewares, which run before the route is known. */
  readonly ofMiddleware: RouteRules;
  private readonly byHandler = new WeakMap<HandlerClass, Map<Handler, RouteRules>>();
  private readonly byClass = new WeakMap<HandlerClass, DeclaredByClass>();
  private hasInterceptor = false;
  private knownModule: DeclarationSite | undefined;

  constructor(
    private readonly registry: LimitRegistry,
    private readonly classes: HandlerClasses,
    private readonly namespaces: Namespaces,
    private readonly sources: LimitSources,
    private readonly guards: GuardCheck,
    private readonly paths: RoutePaths,
  ) {
    this.ofMiddleware = new RouteRules([{ ...MODULE_SITE, specs: registry.moduleRules }], false);
  }

  /** The rules of a route, created at the first request unless the check at start-up needed them. */
  of(type: HandlerClass, handler: Handler): RouteRules {
    let ofType = this.byHandler.get(type);
    if (ofType === undefined) this.byHandler.set(type, (ofType = new Map()));
    let routeRules = ofType.get(handler);
    if (routeRules === undefined) ofType.set(handler, (routeRules = this.rulesFor(type, handler)));
    return routeRules;
  }

  /** Throws `RateLimitConfigError` if any limit of a route is wrong. Returns its limits, some of which may be rules without a place. */
  check(type: HandlerClass, method: DeclaredMethod): readonly Spec[] {
    return this.ownOf(type, method) ?? this.of(type, method.handler).declared.flatMap(({ specs }) => specs);
  }

  /** The limits of a route without any others, if its rules can't be wrong, so that creating them can wait for the first request. */
  private ownOf(type: HandlerClass, { name, declared: { specs, skips } }: DeclaredMethod): Rule[] | undefined {
    if (skips.length > 0 || !this.ofClass(type).declaresNothing) return undefined;
    const rules = new Map<string, Rule>();
    for (const spec of specs) {
      const isDefinition = isFixed(spec) && typeof spec !== 'string';
      const rule = isDefinition ? this.registry.checkOnRoute(spec, locationOf({ type, method: name })) : undefined;
      if (rule === undefined || rules.has(rule.name)) return undefined;
      rules.set(rule.name, rule);
    }
    return [...rules.values()];
  }

  /**
   * Returns true if a limit of any route matters after the guards, so that an interceptor has to run. In most apps none does, and running a
   * request through an interceptor costs more time than checking all of its limits. Call it once Nest has found all modules; the result
   * doesn't change.
   */
  needInterceptor(): boolean {
    const needsInterceptor = ({ spec, location }: PlacedSpec) =>
      !isFixed(spec) || this.registry.needsInterceptor(spec, location);
    try {
      this.hasInterceptor =
        this.registry.hasModuleSources ||
        this.registry.moduleRules.some((rule) => rule.needsInterceptor) ||
        this.classes.declared().some(({ specs }) => specs.some(needsInterceptor));
    } catch {
      // The check at start-up reports the errors in them.
      this.hasInterceptor = true;
    }
    return this.hasInterceptor;
  }

  /** The statuses of rejections by the limits that a route has or may get; empty if it has none. */
  refusalStatuses(type: HandlerClass, handler: Handler): ReadonlySet<number> {
    const statuses = new Map<unknown, number | undefined>(
      this.registry.moduleRules.map((rule) => [rule.name, statusOf(rule)]),
    );
    if (this.registry.hasModuleSources) statuses.set(this.registry, HttpStatus.TOO_MANY_REQUESTS);
    for (const target of [...lineageOf(type), handler]) {
      const { specs, skips } = declaredOn(target);
      const location = locationOf(
        target === handler
          ? { type, method: this.classes.nameOf(type, handler) ?? (handler as Function).name }
          : { type: target as HandlerClass },
      );
      if (skips === 'all') statuses.clear();
      else for (const name of skips) statuses.delete(name);
      for (const spec of specs) {
        const rule = this.ruleOf(spec, location);
        // A function that chooses limits is its own key, since it can't be skipped by name.
        statuses.set(rule?.name ?? spec, rule === undefined ? HttpStatus.TOO_MANY_REQUESTS : statusOf(rule));
      }
    }
    return new Set([...statuses.values()].filter((status) => status !== undefined));
  }

  /** The rule of a limit, if it can be read before all limits are defined. */
  private ruleOf(spec: LimitSpec, location: string): Rule | undefined {
    if (!isFixed(spec) || (typeof spec === 'string' && !this.registry.has(spec))) return undefined;
    try {
      return this.registry.anywhere(spec, location);
    } catch {
      // The check at start-up reports the errors in it.
      return undefined;
    }
  }

  private rulesFor(type: HandlerClass, handler: Handler): RouteRules {
    const method = this.classes.nameOf(type, handler);
    const name = `${classNameOf(type)}.${method ?? (handler as Function).name}`;
    const location = `@RateLimit on ${name}`;
    const declarer = { type, ...(method !== undefined && { method }) };
    const { sites: ofClass, isGuarded } = this.ofClass(type);
    const sites = [
      this.ofRoute(this.ofModule, '', declarer, name),
      ...ofClass.map((site) => this.ofRoute(site, ROUTE_OF_CLASS, declarer, name)),
      this.site(location, handler, declarer),
    ];
    this.refuseIdleSkips(sites);
    // For calls other than those of HTTP routes, not all guards may be known here.
    const knowsGuards = sites.some(({ specs }) => specs.some(isSource)) && isHttpRoute(handler);
    const routeRules = new RouteRules(
      sites,
      isGuarded || bindsOtherGuard(handler),
      knowsGuards ? this.guards : undefined,
      this.paths,
    );
    if (routeRules.needsInterceptor && !this.hasInterceptor) {
      throw configError('SLUICE_UNCHECKED_LIMIT', messages.noInterceptor(location));
    }
    if (routeRules.waitsForEnd || this.ofMiddleware.middlewareWaitsForEnd) awaited.add(handler);
    return routeRules;
  }

  /** Turns the declarations of a site into those of one route, which has its own counter for some limits. */
  private ofRoute(site: DeclarationSite, prefix: string, declarer: Declarer, name: string): DeclarationSite {
    const { specs } = site;
    if (!specs.some((spec) => isSource(spec) || spec.perRoute)) return site;
    const namespace = () => prefix + this.namespaces.of(declarer);
    const ofRoute = (spec: Spec) => {
      if (isSource(spec)) return spec.forRoute(name, namespace);
      return spec.perRoute ? new RouteRule(spec, namespace()) : spec;
    };
    return { ...site, specs: specs.map(ofRoute) };
  }

  private ofClass(type: HandlerClass): DeclaredByClass {
    return getOrMake(this.byClass, type, () => {
      const sites = this.sitesOf(type);
      const declaresNothing = [this.ofModule, ...sites].every(
        ({ specs, skips }) => specs.length === 0 && skips.length === 0,
      );
      return { sites, declaresNothing, isGuarded: bindsOtherGuard(type) };
    });
  }

  /** Throws `RateLimitConfigError` for limits of the module that depend on the request and are wrong for every request. */
  checkModule(): void {
    if (this.registry.hasModuleSources) void new RouteRules([this.ofModule], false);
  }

  /** The limits of the module, created once all named limits are known. */
  private get ofModule(): DeclarationSite {
    return (this.knownModule ??= {
      ...MODULE_SITE,
      specs: this.registry.moduleSpecs.map((spec, index) =>
        spec instanceof Rule ? spec : this.sources.make(spec, placeInModule(index)),
      ),
    });
  }

  /** The limits declared by a class and its superclasses. */
  sitesOf(type: HandlerClass): DeclarationSite[] {
    return lineageOf(type)
      .filter((target) => target === type || isDeclaration(declaredOn(target)))
      .map((target) => this.site(`@RateLimit on ${classNameOf(target as HandlerClass)}`, target, { type }));
  }

  private site(location: string, target: object, declarer: Declarer): DeclarationSite {
    const { specs, skips } = declaredOn(target);
    let place: Declaration | undefined;
    const compile = (spec: LimitSpec): Spec => {
      if (typeof spec === 'string') {
        const rule = this.registry.rule(spec, { location, namespace: '' });
        rule.isOnRoute = true;
        return rule;
      }
      place ??= { location, namespace: this.namespaces.of(declarer), onRoutes: true };
      return isFixed(spec) ? this.registry.rule(spec, place) : this.sources.make(spec, place);
    };
    return { location, skips, specs: specs.map(compile) };
  }

  private refuseIdleSkips(sites: readonly DeclarationSite[]): void {
    if (sites.every(({ skips }) => skips.length === 0)) return;
    const known = new Set(this.registry.names);
    let outer: Rule[] = [];
    for (const { location, skips, specs } of sites) {
      const place = location.replace('@RateLimit', '@SkipRateLimit');
      const unknown = skips === 'all' ? undefined : skips.find((name) => !known.has(name));
      if (unknown !== undefined) {
        throw configError('SLUICE_UNKNOWN_LIMIT', messages.skipsNothing(place, unknown, [...known]));
      }
      outer = skips === 'all' ? [] : outer.filter(({ name }) => !skips.includes(name));
      for (const { name, ancestors } of outer) {
        const parent = ancestors.find((ancestor) => skips.includes(ancestor.name));
        if (parent !== undefined)
          throw configError('SLUICE_INVALID_WITHIN', withinMessages.skipsParent(place, name, parent.name));
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

/** The module's site, with its limits removed. */
const MODULE_SITE: DeclarationSite = { location: 'limits', skips: [], specs: [] };

/** The status of a limit's rejections; `undefined` if the limit is hidden from clients. */
function statusOf({ limit, settings: { answer } }: Rule): number | undefined {
  if (limit.hidden) return undefined;
  return overloadStatus(limit) ?? answer.status ?? HttpStatus.TOO_MANY_REQUESTS;
}
