import type { ExecutionContext } from '@nestjs/common';
import type { LimitSource } from '../../app/rules/by-request/limit-sources.js';
import type { LimitRegistry } from '../../app/rules/limit-registry.js';
import { type DeclarationSite, isSource, merge, type RouteRules, rulesOfPhase } from '../../app/rules/route-rules.js';
import type { Rule } from '../../app/rules/rule.js';
import type { ExplainedFunction, LeftOutLimit, LimitOrigin } from './explanation.js';
import { LOCATION } from './question.js';
import { reasons } from './reasons.js';

/** The level of a site of a route: the module's is the first, the method's the last, and classes are between them. */
function levelName(index: number, count: number): 'module' | 'controller' | 'handler' {
  if (index === 0) return 'module';
  return index === count - 1 ? 'handler' : 'controller';
}

/** Determines the origins of limits. */
export class Origins {
  constructor(private readonly registry: LimitRegistry) {}

  /** The origin of a limit that is declared at a site. */
  ofSite(rule: Rule, { location }: Pick<DeclarationSite, 'location'>, level: LimitOrigin['level']): LimitOrigin {
    if (level === 'module') return { level, location: this.ofModule(rule) ?? location };
    const definition = this.ofDefined(rule);
    return { level, location, ...(definition === undefined ? {} : { definition }) };
  }

  /** The origin of a limit that was queried by name, or by definition. */
  ofNamed(rule: Rule, location: string): LimitOrigin {
    const ofModule = this.ofModule(rule);
    if (ofModule !== undefined) return { level: 'module', location: ofModule };
    const definition = this.ofDefined(rule);
    return definition === undefined ? { level: 'code', location } : { level: 'defined', location: definition };
  }

  private ofModule(rule: Rule): string | undefined {
    const index = this.registry.moduleSpecs.indexOf(rule.ofAll ?? rule);
    return index < 0 ? undefined : `limits[${index}]`;
  }

  private ofDefined(rule: Rule): string | undefined {
    return this.registry.named.find((named) => named.rule === (rule.ofAll ?? rule))?.declaration.location;
  }
}

/** A limit that applies. */
export interface TracedRule {
  readonly rule: Rule;
  readonly origin: LimitOrigin;
  /** The origins of the limits of the same name that it replaces, starting with the one farthest from the handler. */
  readonly replaces: LimitOrigin[];
}

interface LeftOutRule extends LeftOutLimit {
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
  answers: ReadonlyMap<LimitSource, readonly Rule[]>,
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

interface Checking {
  /** True if functions are only called after the guards, because no user is known before. */
  readonly asksLater?: boolean;
  /** True if a middleware has checked it. */
  readonly wasEarly?: boolean;
  /** The reason why a function failed, if one did. */
  readonly failure?: string | undefined;
}

/** Limits that are checked together: if one of them rejects, none is charged. */
export interface Group {
  readonly rules: readonly TracedRule[];
  /** The reason why the request fails before they are checked. */
  readonly failure: string | undefined;
}

/** The limits of a request, in the consecutive groups in which they are checked. */
export function groupsOf(
  routeRules: RouteRules,
  { inForce, leftOut }: Trace,
  { asksLater = false, wasEarly = false, failure }: Checking,
): { groups: Group[]; leftOut: LeftOutRule[] } {
  const all = [...inForce, ...leftOut.map(({ rule, origin }) => ({ rule, origin, replaces: [] }))];
  const traced = (rules: readonly Rule[]) => rules.flatMap((rule) => all.find((each) => each.rule === rule) ?? []);
  const rules = inForce.map(({ rule }) => rule);
  // The limits of a middleware apply to every route, even if the route skips them.
  const early = wasEarly ? all.map(({ rule }) => rule).filter(({ phase }) => phase === 'middleware') : [];
  const inGuard = asksLater ? routeRules.guard : rulesOfPhase(rules, 'guard');
  const guard = inGuard.filter((rule) => !early.includes(rule));
  const later = rules.filter((rule) => !early.includes(rule) && !inGuard.includes(rule));
  const groups = [
    { rules: traced(early), failure: undefined },
    { rules: traced(guard), failure: asksLater ? undefined : failure },
    { rules: traced(later), failure: asksLater ? failure : undefined },
  ];
  const noted = leftOut.map((each): LeftOutRule => {
    if (early.includes(each.rule)) return { ...each, note: reasons.checkedEarlier() };
    return guard.includes(each.rule) ? { ...each, note: reasons.checkedBefore() } : each;
  });
  return { groups, leftOut: noted };
}

/** The functions of a route that still apply, and their places. */
function sourcesOf({
  declared,
  sites: levels,
}: RouteRules): { source: LimitSource; origin: ExplainedFunction['origin'] }[] {
  return levels.flatMap((level) => {
    const place = levelName(declared.indexOf(level), declared.length);
    return level.specs
      .filter(isSource)
      .map((source) => ({ source, origin: { level: place, location: source.location } }));
  });
}

/** The functions of a route, which can't be called without a request. */
export function unaskedSources(routeRules: RouteRules): ExplainedFunction[] {
  return sourcesOf(routeRules).map(({ origin }) => ({ origin, asked: false, reason: reasons.functionUnasked() }));
}

/** Calls the functions of a route. A failing one adds no limits here, but a real request would fail. */
export async function askSources(routeRules: RouteRules, context: ExecutionContext) {
  const answers = new Map<LimitSource, readonly Rule[]>();
  const functions: ExplainedFunction[] = [];
  for (const { source, origin } of sourcesOf(routeRules)) {
    try {
      const rules = await source.ask(context);
      answers.set(source, rules);
      functions.push({ origin, asked: true, gave: rules.map(({ name }) => name) });
    } catch (error) {
      functions.push({ origin, asked: true, reason: reasons.sourceFailed(error) });
    }
  }
  return { answers, functions };
}
