import { Injectable } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { limitersOf } from '../config/limiter-tokens.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { bindsOwnGuard } from './bound-guards.js';
import { declaredOn, lineageOf } from './declared-metadata.js';
import { GuardCheck } from './guard-check.js';
import { HandlerClasses, isRoute } from './handler-classes.js';
import { LimitRegistry } from './limit-registry.js';
import { classNameOf, type HandlerClass, Namespaces } from './namespaces.js';
import { rulesOfPhase } from './route-rules.js';
import { RouteRulesRegistry } from './route-rules-registry.js';
import { isGateway, resolvesField } from './route-names.js';

/** Makes the rules of all routes of an app when it starts, and refuses mistakes that requests would run into later. */
@Injectable()
export class StartUpCheck {
  constructor(
    private readonly registry: LimitRegistry,
    private readonly modules: ModulesContainer,
    private readonly classes: HandlerClasses,
    private readonly namespaces: Namespaces,
    private readonly routes: RouteRulesRegistry,
    private readonly guards: GuardCheck,
  ) {}

  /** Throws `RateLimitConfigError` for limits that no request could be checked against. */
  run(): void {
    for (const module of this.modules.values()) {
      for (const { metatype, inject } of [...module.controllers.values(), ...module.providers.values()]) {
        this.refuseUnknownLimiters(metatype, inject);
      }
    }
    // Throws for limits that are within a limit in a way that is not allowed.
    for (const rule of [...this.registry.moduleRules, ...this.registry.named.map((limit) => limit.rule)]) {
      void rule.ancestors;
    }
    const classes = this.classes.all();
    this.namespaces.assign(classes.flatMap((type) => this.classes.declarers(type)));
    for (const type of classes) {
      // Also for a controller without routes, whose own limits would otherwise never be read.
      this.routes.sitesOf(type);
      for (const method of this.classes.lostMethods(type)) {
        throw new RateLimitConfigError(messages.lostMethod(`@RateLimit on ${classNameOf(type)}.${method}`));
      }
      for (const handler of this.classes.routes(type)) this.routes.of(type, handler);
    }
    if (!this.guards.isEverywhere) this.refuseUnguarded(classes);
    if (this.guards.isEnabled) this.refuseUnreached(classes);
    this.guards.warnOfFields(classes.flatMap((type) => this.fields(type)));
    // If the guard has nothing to check, its position does not matter.
    if (classes.some((type) => this.hasLimits(type))) this.guards.warnOfEarlier();
  }

  private refuseUnknownLimiters(type: object | null, inject: readonly unknown[] | null | undefined): void {
    for (const name of limitersOf(type, inject)) {
      if (this.registry.has(name)) continue;
      const className = (type as Function | null)?.name ?? 'a factory';
      throw new RateLimitConfigError(messages.injectsUnknown(className || 'a factory', name, this.registry.names));
    }
  }

  private refuseUnguarded(classes: readonly HandlerClass[]): void {
    const unguarded = classes.flatMap((type) => this.unguarded(type));
    if (unguarded.length > 0) throw new RateLimitConfigError(messages.unguarded(unguarded));
    const { moduleRules } = this.registry;
    if (rulesOfPhase(moduleRules, 'middleware').length === moduleRules.length) return;
    const bound = this.classes
      .known()
      .some((type) => [type, ...this.classes.handlers(type).values()].some(bindsOwnGuard));
    if (!bound) throw new RateLimitConfigError(messages.unguarded(["the module's 'limits'"]));
  }

  /** Refuses limits where Nest calls no guards, although one is bound. */
  private refuseUnreached(classes: readonly HandlerClass[]): void {
    if (this.guards.reachesGateways) return;
    const gateways = classes.filter(isGateway).flatMap((type) => this.unguarded(type));
    if (gateways.length > 0) throw new RateLimitConfigError(messages.unreachedGateways(gateways));
  }

  /** The routes of a class that have limits but none of our guards. */
  private unguarded(type: HandlerClass): string[] {
    if (bindsOwnGuard(type)) return [];
    const ofClass = lineageOf(type).some((target) => declaredOn(target).specs.length > 0);
    return [...this.classes.handlers(type)]
      .filter(([, handler]) => (ofClass ? isRoute(handler) : declaredOn(handler).specs.length > 0))
      .filter(([, handler]) => !this.routes.of(type, handler).isEmpty && !bindsOwnGuard(handler))
      .map(([method]) => `${classNameOf(type)}.${method}`);
  }

  /** The fields of GraphQL types that declare limits. */
  private fields(type: HandlerClass): string[] {
    return [...this.classes.handlers(type)]
      .filter(([, handler]) => resolvesField(type, handler) && declaredOn(handler).specs.length > 0)
      .map(([method]) => `${classNameOf(type)}.${method}`);
  }

  private hasLimits(type: HandlerClass): boolean {
    return this.classes.routes(type).some((handler) => !this.routes.of(type, handler).isEmpty);
  }
}
