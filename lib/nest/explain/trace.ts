import { type DeclarationSite, isSource, merge, type RuleSource } from '../../app/rules/route-rules.js';
import type { Rule } from '../../app/rules/rule.js';
import type { LeftOutLimit, LimitOrigin } from './explanation.js';
import { levelName, type Origins } from './origins.js';
import { LOCATION } from './query.js';

/** A limit that applies. */
export interface TracedRule {
  readonly rule: Rule;
  readonly origin: LimitOrigin;
  /** The origins of the limits of the same name that it replaces, starting with the one farthest from the handler. */
  readonly replaces: LimitOrigin[];
}

/** A limit that does not apply. */
export interface LeftOutRule extends LeftOutLimit {
  readonly rule: Rule;
}

/** The limits of a route that apply, and those that do not. */
export interface Trace {
  readonly inForce: TracedRule[];
  readonly leftOut: LeftOutRule[];
}

/**
 * Merges the sites of a route, and records the limits that are left out. `answers`: the results of functions. Throws `RateLimitConfigError`
 * if these conflict.
 */
export function trace(
  sites: readonly DeclarationSite[],
  answers: ReadonlyMap<RuleSource, readonly Rule[]>,
  origins: Origins,
): Trace {
  const traced = new Map<Rule, TracedRule>();
  const replaced = new Map<string, LimitOrigin[]>();
  const leftOut: LeftOutRule[] = [];
  const rules = merge(sites, answers, {
    leftOut(rule, site, because) {
      const { name } = rule;
      const { origin, replaces } = traced.get(rule)!;
      leftOut.push({ rule, name, origin, because, by: because === 'skipped' ? skipOf(site) : site.location });
      replaced.set(name, because === 'skipped' ? [] : [...replaces, origin]);
    },
    applied(rule, site, spec) {
      const origin = origins.ofSite(rule, site, levelName(sites.indexOf(site), sites.length));
      if (isSource(spec)) Object.assign(origin, { location: spec.location, byFunction: true });
      traced.set(rule, { rule, origin, replaces: replaced.get(rule.name) ?? [] });
    },
  });
  // A limit is checked together with its ancestors, which may not be declared on any site.
  const ofNamed = (rule: Rule): TracedRule => ({ rule, origin: origins.ofNamed(rule, LOCATION), replaces: [] });
  return { inForce: rules.map((rule) => traced.get(rule) ?? ofNamed(rule)), leftOut };
}

/** A `@SkipRateLimit`, as users write it. */
export function skipOf({ location, skips }: DeclarationSite): string {
  const names = skips === 'all' ? '' : skips.map((name) => `'${name}'`).join(', ');
  return location.replace('@RateLimit', `@SkipRateLimit(${names})`);
}
