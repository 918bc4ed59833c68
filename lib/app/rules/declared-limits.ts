import { Injectable } from '@nestjs/common';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { HandlerClasses } from './handler-classes.js';
import { LimitRegistry } from './limit-registry.js';
import { isSource } from './route-rules.js';
import { RouteRulesRegistry } from './route-rules-registry.js';
import type { Rule } from './rule.js';

/** The time that a result is reused, in milliseconds. After that, modules that were loaded lazily may have declared more. */
const FRESH_MS = 10_000;

/**
 * The rules of the module's limits, of defined limits and of the limits of all routes, with their places. Functions may return further
 * ones.
 */
export function declaredRules(
  registry: LimitRegistry,
  routes: RouteRulesRegistry,
  classes: HandlerClasses,
): Map<Rule, string> {
  const places = new Map<Rule, string>();
  for (const { rule } of registry.named) places.set(rule, '');
  for (const rule of registry.moduleRules) places.set(rule, '');
  for (const { type, routes: methods } of classes.declared()) {
    for (const { handler } of methods) {
      for (const { specs, location } of routes.of(type, handler).declared) {
        for (const spec of specs) if (!isSource(spec) && !places.has(spec)) places.set(spec, location);
      }
    }
  }
  return places;
}

/** Finds a declared limit from a counter's id, for stores that update counters without a request. */
@Injectable()
export class DeclaredLimits {
  private rules = new Map<string, Rule>();
  private readAt = -Infinity;

  constructor(
    private readonly registry: LimitRegistry,
    private readonly routes: RouteRulesRegistry,
    private readonly classes: HandlerClasses,
  ) {}

  /**
   * The limit that currently decides for a key, if it has this `id`; `undefined` if no limit has it any more, or its counters were
   * restarted.
   */
  readonly find = (id: string, identity: string): CompiledLimit | undefined => {
    const limit = this.ruleOf(recordOf(id))?.limitFor(identity);
    return limit?.id === id ? limit : undefined;
  };

  /** The places of the limits with this name: `''` for those of `define` and the module, otherwise a class or route. */
  placesOf(name: string): string[] {
    const rules = [...declaredRules(this.registry, this.routes, this.classes)];
    return rules.flatMap(([rule, place]) => (rule.name === name ? [place] : []));
  }

  private ruleOf(record: string): Rule | undefined {
    const known = this.rules.get(record);
    if (known !== undefined || performance.now() - this.readAt < FRESH_MS) return known;
    this.rules = new Map();
    for (const rule of declaredRules(this.registry, this.routes, this.classes).keys()) {
      this.rules.set(rule.configured.recordId, rule);
    }
    this.readAt = performance.now();
    return this.rules.get(record);
  }
}

/** The part after the last colon changes with the algorithm and when counters are restarted. */
function recordOf(id: string): string {
  return id.slice(0, id.lastIndexOf(':'));
}
