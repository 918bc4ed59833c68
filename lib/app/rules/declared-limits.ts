import { Injectable } from '@nestjs/common';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { HandlerClasses } from './handler-classes.js';
import { LimitRegistry } from './limit-registry.js';
import { isSource } from './route-rules.js';
import { RouteRulesRegistry } from './route-rules-registry.js';
import type { Rule } from './rule.js';

/** How old what was found may be, in milliseconds: modules that are loaded lazily declare more. */
const FRESH_MS = 10_000;

/** The rules of the limits of the module, of those that are defined, and of those of all routes, with their place. Functions may provide more. */
export function declaredRules(
  registry: LimitRegistry,
  routes: RouteRulesRegistry,
  classes: HandlerClasses,
): Map<Rule, string> {
  const places = new Map<Rule, string>();
  for (const { rule } of registry.named) places.set(rule, '');
  for (const rule of registry.moduleRules) places.set(rule, '');
  for (const type of classes.all()) {
    for (const handler of classes.routes(type)) {
      for (const { specs, location } of routes.of(type, handler).declared) {
        for (const spec of specs) if (!isSource(spec) && !places.has(spec)) places.set(spec, location);
      }
    }
  }
  return places;
}

/** Finds declared limits by what identifies their counters, for a store that looks after counters for which nobody asks. */
@Injectable()
export class DeclaredLimits {
  private rules = new Map<string, Rule>();
  private readAt = -Infinity;

  constructor(
    private readonly registry: LimitRegistry,
    private readonly routes: RouteRulesRegistry,
    private readonly classes: HandlerClasses,
  ) {}

  /** The limit of an `id` that decides now for an identity; `undefined` if there is none, or its counters have been started anew. */
  readonly find = (id: string, identity: string): CompiledLimit | undefined => {
    const limit = this.ruleOf(recordOf(id))?.limitFor(identity);
    return limit?.id === id ? limit : undefined;
  };

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

/** What follows the last colon changes with the algorithm, and when counters are started anew. */
function recordOf(id: string): string {
  return id.slice(0, id.lastIndexOf(':'));
}
