import { Injectable } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { limitersOf } from '../config/tokens.js';
import { configError } from '../../engine/errors/errors.js';
import { moduleLogger } from '../../engine/errors/logger.js';
import { messages } from '../../engine/errors/messages/general.js';
import { bindsOwnGuard, GuardCheck } from './guard-check.js';
import { type DeclaredClass, HandlerClasses, isRoute } from './handler-classes.js';
import { LimitRegistry } from './limit-registry.js';
import { classNameOf, Namespaces } from './namespaces.js';
import { rulesOfPhase } from './route-rules.js';
import { Rule } from './rule.js';
import { countsAddresses } from './possible-keys.js';
import { RouteRulesRegistry } from './route-rules-registry.js';
import { isGateway, resolvesField } from './route-names.js';

/** Checks the limits of all routes when the app starts, and throws for errors that would otherwise only appear when a request arrives. */
@Injectable()
export class StartUpCheck {
  /** The name of a limit that counts requests per address, if there is one. */
  byAddress: string | undefined;

  constructor(
    private readonly registry: LimitRegistry,
    private readonly modules: ModulesContainer,
    private readonly classes: HandlerClasses,
    private readonly namespaces: Namespaces,
    private readonly routes: RouteRulesRegistry,
    private readonly guards: GuardCheck,
  ) {}

  /** Throws `RateLimitConfigError` for limits that can't be checked for any request. */
  run(): void {
    for (const module of this.modules.values()) {
      const { controllers, providers, injectables } = module;
      for (const { metatype, inject } of [...controllers.values(), ...providers.values(), ...injectables.values()]) {
        this.refuseUnknownLimiters(metatype, inject);
      }
    }
    // Throws for limits whose parent is not allowed.
    for (const rule of [...this.registry.moduleRules, ...this.registry.named.map((limit) => limit.rule)]) {
      void rule.ancestors;
    }
    this.routes.checkModule();
    const classes = this.classes.declared();
    const { countsPerRoute } = this.registry;
    this.namespaces.assign(classes.flatMap((each) => each.declarers(countsPerRoute)));
    for (const each of classes) {
      const { type, lost } = each;
      // This includes controllers without routes, whose limits would otherwise never be read.
      this.routes.sitesOf(type);
      for (const method of lost) {
        throw configError(
          'SLUICE_UNCHECKED_LIMIT',
          messages.lostMethod(`@RateLimit on ${classNameOf(type)}.${method}`),
        );
      }
      // Other routes, which have no limits and skip none, get their rules at their first call.
      for (const method of this.registry.moduleSpecs.length > 0 ? each.routes : each.declaredRoutes) {
        const specs = this.routes.check(type, method);
        this.byAddress ??= specs
          .map((spec) => (spec instanceof Rule ? spec : spec.example))
          .find((rule) => rule !== undefined && countsAddresses(rule, true))?.name;
      }
    }
    if (!this.guards.isEverywhere) this.refuseUnguarded(classes);
    if (this.guards.isEnabled) this.refuseUnreached(classes);
    for (const place of classes.flatMap(({ unread }) => unread)) moduleLogger.warn(messages.notRead(place));
    this.guards.warnOfFields(classes.flatMap((each) => this.fields(each)));
    this.registry.hasStarted = true;
  }

  private refuseUnknownLimiters(type: object | null, inject: readonly unknown[] | null | undefined): void {
    for (const name of limitersOf(type, inject)) {
      if (this.registry.has(name)) continue;
      const className = (type as Function | null)?.name ?? 'a factory';
      throw configError(
        'SLUICE_UNKNOWN_LIMIT',
        this.registry.unknown(`@InjectLimiter in ${className || 'a factory'}`, name),
      );
    }
  }

  private refuseUnguarded(classes: readonly DeclaredClass[]): void {
    const unguarded = classes.flatMap((each) => this.unguarded(each));
    if (unguarded.length > 0) throw configError('SLUICE_UNCHECKED_LIMIT', messages.unguarded(unguarded));
    const { moduleRules, hasModuleSources } = this.registry;
    if (!hasModuleSources && rulesOfPhase(moduleRules, 'middleware').length === moduleRules.length) return;
    const bound = this.classes
      .known()
      .some((type) => [type, ...this.classes.handlers(type).values()].some(bindsOwnGuard));
    if (!bound) throw configError('SLUICE_UNCHECKED_LIMIT', messages.unguarded(["the module's 'limits'"]));
  }

  /** Throws for limits on methods before which Nest calls no guards, although a guard is bound. */
  private refuseUnreached(classes: readonly DeclaredClass[]): void {
    if (this.guards.reachesGateways) return;
    const gateways = classes.filter(({ type }) => isGateway(type)).flatMap((each) => this.unguarded(each));
    if (gateways.length > 0) throw configError('SLUICE_UNCHECKED_LIMIT', messages.unreachedGateways(gateways));
  }

  /** The routes of a class that have limits but no `RateLimitGuard`. */
  private unguarded({ type, hasLimitsOfClass, methods }: DeclaredClass): string[] {
    if (bindsOwnGuard(type)) return [];
    return methods
      .filter(({ handler, declared }) => (hasLimitsOfClass ? isRoute(handler) : declared.specs.length > 0))
      .filter(({ handler }) => !this.routes.of(type, handler).isEmpty && !bindsOwnGuard(handler))
      .map(({ name }) => `${classNameOf(type)}.${name}`);
  }

  private fields({ type, methods }: DeclaredClass): string[] {
    return methods
      .filter(({ handler, declared }) => declared.specs.length > 0 && resolvesField(type, handler))
      .map(({ name }) => `${classNameOf(type)}.${name}`);
  }
}
