import type { ExecutionContext } from '@nestjs/common';
import { configError } from '../../engine/errors/errors.js';
import { withinMessages } from '../../engine/errors/messages/calls.js';
import { messages } from '../../engine/errors/messages/general.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { type Awaitable, mapAll } from '../../engine/util/awaitable.js';
import type { Phase } from '../config/common-limit-options.js';
import type { RequestParts } from '../transports/request-reader.js';
import type { RoutePaths } from './route-paths.js';
import type { LimitSource } from './by-request/limit-sources.js';
import { Rule } from './rule.js';

/** The declarations in one place: the module, a class, a route. */
export interface DeclarationSite {
  /** The place, for messages. */
  readonly location: string;
  /** The limits of outer sites that are skipped from here on. */
  readonly skips: 'all' | readonly string[];
  readonly specs: readonly (Rule | LimitSource)[];
}

type Answers = ReadonlyMap<LimitSource, readonly Rule[]>;

/** The rules of one route, determined once. */
export class RouteRules {
  /** The rules that are checked in a middleware, if one runs. */
  readonly middleware: readonly Rule[];
  /** The rules that are checked in the guard, including those of the middleware. */
  readonly guard: readonly Rule[];
  /** The rules that are checked after all guards. */
  readonly authenticated: readonly Rule[];
  /** True if functions provide some of its rules. */
  readonly hasSources: boolean;
  /** True if a rule may have to be checked after the guards. */
  readonly continuesAfterGuards: boolean;
  /** True if nothing is ever checked in the guard or after it. */
  readonly isEmpty: boolean;
  /** True if rules depend on the end of a request, or may do so because functions provide some of them. */
  readonly waitsForEnd: boolean;
  /** True if rules of the middleware depend on the end of a request. */
  readonly middlewareWaitsForEnd: boolean;
  /** All sites, from the outermost to the nearest, including those from which nothing applies. */
  readonly declared: readonly DeclarationSite[];
  /** True if the route or its class skips all limits of outer sites. */
  readonly skipsAll: boolean;
  /** The sites that the nearest `@SkipRateLimit()` leaves. */
  readonly sites: readonly DeclarationSite[];
  private readonly sources: readonly LimitSource[];

  /**
   * @param sites from the outermost to the nearest
   * @param guarded true if the route has its own guards, which may set a user
   * @param others reports if global guards may set one, once that is known
   */
  constructor(
    sites: readonly DeclarationSite[],
    private readonly guarded: boolean,
    private readonly others?: { readonly hasOthers: boolean },
    /** Builds the path, for HTTP requests that don't contain their route. */
    readonly paths?: RoutePaths,
  ) {
    this.declared = sites;
    const bare = sites.findLastIndex(({ skips }) => skips === 'all');
    this.skipsAll = bare >= 0;
    this.sites = bare > 0 ? sites.slice(bare) : sites;
    this.sources = this.sites.flatMap(({ specs }) => specs.filter(isSource));
    const rules = merge(this.sites, new Map());
    this.refuseConflicts();
    const hasPhases = rules.some(({ isNested, phase }) => isNested || phase !== 'guard');
    this.middleware = hasPhases ? rulesOfPhase(rules, 'middleware') : NO_RULES;
    this.guard = hasPhases ? rulesOfPhase(rules, 'guard') : rules;
    this.authenticated = hasPhases ? rulesOfPhase(rules, 'authenticated') : NO_RULES;
    this.hasSources = this.sources.length > 0;
    this.continuesAfterGuards = this.authenticated.length > 0 || this.hasSources;
    this.isEmpty = this.guard.length === 0 && !this.continuesAfterGuards;
    this.waitsForEnd = this.hasSources || [...this.guard, ...this.authenticated].some((rule) => rule.waitsForEnd);
    this.middlewareWaitsForEnd = this.middleware.some((rule) => rule.waitsForEnd);
  }

  /** True if the interceptor has to run for its requests. */
  get needsInterceptor(): boolean {
    return this.hasSources || [...this.guard, ...this.authenticated].some((rule) => rule.needsInterceptor);
  }

  /**
   * Returns true if functions have to wait until all guards have run: they may choose per user, and a guard may still set one. A call
   * without a request, which can't have a user, waits only for guards of the route, since global interceptors may not run for it.
   */
  waitsForGuards({ request }: RequestParts): boolean {
    if (request === undefined) return this.guarded;
    return (request.user === undefined || request.user === null) && (this.guarded || this.others?.hasOthers !== false);
  }

  /** All rules, including those that functions provide for this request. */
  ask(context: ExecutionContext): Awaitable<Rule[]> {
    const answers = mapAll(this.sources, (source) => source.ask(context));
    const merged = (given: Awaited<typeof answers>) =>
      merge(this.sites, new Map(this.sources.map((source, index) => [source, given[index]!])));
    return Array.isArray(answers) ? merged(answers) : answers.then(merged);
  }

  /** Merges limits whose rates are functions, as each request will do later. Throws `RateLimitConfigError`. */
  private refuseConflicts(): void {
    const examples = new Map<LimitSource, readonly Rule[]>();
    for (const source of this.sources) if (source.example !== undefined) examples.set(source, [source.example]);
    if (examples.size > 0) merge(this.sites, examples);
  }
}

/** The rules of a phase. The guard also checks those of the middleware, because the middleware may not run. */
export function rulesOfPhase(rules: readonly Rule[], phase: Phase): readonly Rule[] {
  const later = levelsAfterGuards(rules);
  return rules.filter((rule) => {
    const own = later.has(rule) ? 'authenticated' : rule.phase;
    return own === phase || (phase === 'guard' && own === 'middleware');
  });
}

/** The levels of all hierarchies that have a level in a later phase: all levels of a hierarchy are charged together. */
function levelsAfterGuards(rules: readonly Rule[]): ReadonlySet<Rule> {
  if (!rules.some(({ isNested }) => isNested)) return NO_LEVELS;
  const roots = new Set<Rule>();
  for (const rule of rules) if (rule.isNested && rule.phase === 'authenticated') roots.add(rule.ancestors.at(-1)!);
  if (roots.size === 0) return NO_LEVELS;
  return new Set(rules.filter((rule) => roots.has(rule.ancestors.at(-1) ?? rule)));
}

const NO_RULES: readonly Rule[] = [];
const NO_LEVELS: ReadonlySet<Rule> = new Set();

/** Adds the ancestors of all limits, each once, after the listed rules. Throws `RateLimitConfigError`. */
export function withAncestors(rules: Rule[], location: string): Rule[] {
  if (!rules.some(({ isNested }) => isNested)) return rules;
  const all = new Set(rules);
  for (const rule of rules) {
    for (const ancestor of rule.ancestors) {
      if (rules.some((other) => other.name === ancestor.name && other !== ancestor)) {
        throw configError(
          'SLUICE_DUPLICATE_LIMIT',
          withinMessages.otherLimitOfName(location, rule.name, ancestor.name),
        );
      }
      all.add(ancestor);
    }
  }
  return [...all];
}

/** Observes the steps of a merge. */
interface MergeObserver {
  /** Called when a limit starts to apply at a site; `spec` is that limit, or the function that returned it. */
  applied(rule: Rule, site: DeclarationSite, spec: Rule | LimitSource): void;
  /** Called when a limit no longer applies from a site on, because the site skips it or has another limit with its name. */
  leftOut(rule: Rule, site: DeclarationSite, because: 'skipped' | 'replaced'): void;
}

/** If limits have the same name, the one closest to the handler wins; two on one site are an error. Throws `RateLimitConfigError`. */
export function merge(sites: readonly DeclarationSite[], answers: Answers, observer?: MergeObserver): Rule[] {
  const merged = new Map<string, Rule>();
  for (const site of sites) {
    const { location, skips, specs } = site;
    for (const name of skips === 'all' ? [...merged.keys()] : skips) {
      const skipped = merged.get(name);
      if (skipped !== undefined) observer?.leftOut(skipped, site, 'skipped');
      merged.delete(name);
    }
    if (specs.length === 0) continue;
    const here = new Set<string>();
    for (const spec of specs) {
      for (const rule of isSource(spec) ? (answers.get(spec) ?? []) : [spec]) {
        const { name } = rule;
        const place = isSource(spec) ? spec.place : location;
        if (here.has(name)) throw configError('SLUICE_DUPLICATE_LIMIT', messages.twice(place, name));
        here.add(name);
        const farther = merged.get(name);
        if (farther?.countsOtherwise(rule) === true) {
          throw configError('SLUICE_DUPLICATE_LIMIT', messages.sameDefaultName(place, name));
        }
        // A defined limit that is named twice is one limit.
        if (farther !== undefined && farther !== rule) observer?.leftOut(farther, site, 'replaced');
        merged.set(name, rule);
        observer?.applied(rule, site, spec);
      }
    }
  }
  return withAncestors([...merged.values()], sites.at(-1)?.location ?? '');
}

export function isSource(spec: Rule | LimitSource): spec is LimitSource {
  return 'ask' in spec;
}

/** A route's own version of a rule that applies to all routes, or to all routes of a class. It follows changes of the rate. */
export class RouteRule extends Rule {
  private source: CompiledLimit;
  /** The route's limits for keys with overrides, by the limits that these keys have on all routes. */
  private readonly ownLimits = new WeakMap<CompiledLimit, CompiledLimit>();
  private readonly namespace: string;

  /** `name`: the unique name of the route. */
  constructor(
    override readonly ofAll: Rule,
    name: string,
  ) {
    const namespace = `${ofAll.configured.namespace} ${name}`;
    super(ofAll.configured.inNamespace(namespace), ofAll.settings);
    this.namespace = namespace;
    this.source = ofAll.configured;
  }

  override get ancestors(): readonly Rule[] {
    return this.ofAll.ancestors;
  }

  override get limit(): CompiledLimit {
    const { limit } = this.ofAll;
    if (limit !== this.source) {
      this.source = limit;
      this.decideBy(limit.inNamespace(this.namespace));
    }
    return super.limit;
  }

  override limitFor(identity: string): CompiledLimit {
    const limit = this.ofAll.limitFor(identity);
    if (limit === this.ofAll.limit) return this.limit;
    let own = this.ownLimits.get(limit);
    if (own === undefined) this.ownLimits.set(limit, (own = limit.inNamespace(this.namespace)));
    return own;
  }
}
