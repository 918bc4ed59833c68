import { isDeepStrictEqual } from 'node:util';
import { Inject, Injectable } from '@nestjs/common';
import { algorithms } from '../../engine/algorithms/index.js';
import { limitOptions, optionsOf, ownerOfOption } from '../config/limit-options.js';
import { configError } from '../../engine/errors/errors.js';
import { logger, OnceLogger } from '../../engine/errors/logger.js';
import { messages } from '../../engine/errors/messages/general.js';
import { optionMessages } from '../../engine/errors/messages/options.js';
import { type LikelySeconds, likelySeconds, wrongOption } from '../../engine/options/check-options.js';
import { isObject } from '../../engine/options/values.js';
import type { LimitDefinition } from '../config/limit-definition.js';
import type { Policy, PolicyLimit } from '../config/policy.js';
import { RATE_LIMIT_POLICY, RATE_LIMIT_SETTINGS } from '../config/tokens.js';
import { type RateLimitSettings } from '../config/settings.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { MODULE_NAMESPACE } from '../../engine/limits/limit-settings.js';
import { type ByRequest, isFixed } from '../config/limits-by-request.js';
import { ancestorsOf, refusePlanOfParent } from './ancestors.js';
import { type Declaration, withPolicy } from './declaration.js';
import type { LimitReading } from './limit-reading.js';
import { countsAddresses, type KeysInUse, takesAnyKey } from './possible-keys.js';
import type { Rule } from './rule.js';
import { RuleCompiler } from './rule-compiler.js';

/** The place of an entry of the module's `limits`. */
export function placeInModule(index: number): Pick<Declaration, 'location' | 'namespace'> {
  return { location: `limits[${index}]`, namespace: MODULE_NAMESPACE };
}

/** A limit that only a policy defines, and its rule. */
export interface AddedLimit {
  readonly policy: PolicyLimit;
  readonly rule: Rule;
}

/** The definition of a named limit without overrides. */
export interface LimitVersion {
  definition: LimitDefinition;
  limit: CompiledLimit;
  /** The values that a policy sets for it. */
  policy: PolicyLimit | undefined;
}

/** A limit with its own name. A new version of the policy replaces its definition. */
export interface NamedLimit extends LimitVersion {
  /** Its definition in code; `undefined` if only a policy defines it. */
  readonly written: LimitDefinition | undefined;
  /** The definition that its rule was created from. */
  readonly first: LimitDefinition;
  readonly declaration: Declaration;
  readonly rule: Rule;
}

/** The limits that don't belong to a class or route: those of the module, and those defined by name. */
@Injectable()
export class LimitRegistry {
  /** The limits that apply to every route, except those that depend on the request. */
  readonly moduleRules: readonly Rule[];
  /** The module's `limits` as written, including those that depend on the request, with the rules of all others. */
  readonly moduleSpecs: readonly (Rule | ByRequest)[];
  /** Called when limits were added. */
  onDefined: () => void = () => undefined;
  /** True if a class or route has limits that depend on the request. */
  choosesOnRoutes = false;
  /** True once the limits of all routes have been checked. */
  hasStarted = false;
  private readonly moduleLimits: readonly NamedLimit[];
  /** The places of the module's limits by name, including limits that depend on the request. */
  private readonly modulePlaces = new Map<string, string>();
  private readonly defined = new Map<string, NamedLimit>();
  /** True if a limit without a name accepts any key. */
  private othersTakeAnyKey = false;
  private othersCountAddresses = false;
  /** The names of defined limits that other limits also use. */
  private readonly namedAgain = new Set<string>();
  private readonly log = new OnceLogger(logger);
  /** The names of limits that have children. */
  private readonly parents = new Set<string>();
  /** Limits from functions and code, which mostly pass the same objects again and again. */
  private readonly elsewhere = new WeakMap<LimitDefinition, WrittenLimit>();
  /** Limits of classes and routes. */
  private readonly onRoutes = new WeakMap<LimitDefinition, WrittenLimit>();

  constructor(
    @Inject(RATE_LIMIT_SETTINGS) { options }: RateLimitSettings,
    private readonly compiler: RuleCompiler,
    @Inject(RATE_LIMIT_POLICY) private readonly policy?: Policy,
  ) {
    for (const { option, got } of likelySeconds(options.defaults ?? {}, limitOptions)) {
      this.log.warn(optionMessages.likelySeconds(`defaults.${option}`, got));
    }
    const specs = (options.limits ?? []).map((definition, index): NamedLimit | ByRequest => {
      if (!isFixed(definition)) return definition;
      const declaration = { ...placeInModule(index), everywhere: true };
      return this.compileNamed(definition, declaration, definition?.name);
    });
    const moduleLimits = specs.filter((spec): spec is NamedLimit => 'rule' in spec);
    this.moduleSpecs = specs.map((spec) => ('rule' in spec ? spec.rule : spec));
    this.moduleRules = moduleLimits.map(({ rule }) => rule);
    this.moduleLimits = moduleLimits.filter(({ written }) => written?.name !== undefined);
    for (const [index, spec] of specs.entries()) {
      const name = nameInModule(spec);
      if (name === undefined) continue;
      if (this.modulePlaces.has(name)) throw configError('SLUICE_DUPLICATE_LIMIT', messages.twice('limits', name));
      this.modulePlaces.set(name, placeInModule(index).location);
    }
    this.define(options.define ?? {}, 'define');
  }

  /** True if any limit of the module depends on the request. */
  get hasModuleSources(): boolean {
    return this.moduleRules.length < this.moduleSpecs.length;
  }

  /** True if any limit of the app depends on the request. */
  get choosesByRequest(): boolean {
    return this.choosesOnRoutes || this.hasModuleSources;
  }

  /** True if a limit of the module has a counter per route. */
  get countsPerRoute(): boolean {
    return this.moduleSpecs.some((spec) => 'perRoute' in spec && spec.perRoute);
  }

  /** The names that routes and code can refer to. */
  get names(): string[] {
    return [...this.defined.keys()];
  }

  /** The limits whose rates can be changed by name: defined limits, and limits of the module that have a name. */
  get named(): NamedLimit[] {
    return [...this.moduleLimits, ...this.defined.values()];
  }

  /** The kinds of keys that the app's limits use. */
  get keysInUse(): KeysInUse {
    const rules = [...this.moduleRules, ...this.named.map(({ rule }) => rule)];
    return {
      takesAny: this.othersTakeAnyKey || rules.some(takesAnyKey),
      countsAddresses: this.othersCountAddresses || rules.some((rule) => countsAddresses(rule)),
      ipv6Prefix: rules[0]?.settings.ipv6Prefix,
    };
  }

  has(name: string): boolean {
    return this.defined.has(name);
  }

  /** Adds definitions. The same one may be added twice, for example when a feature is imported by two modules. */
  define(definitions: Readonly<Record<string, LimitDefinition>>, location: string): void {
    for (const [name, definition] of Object.entries(definitions)) {
      const known = this.defined.get(name);
      if (known !== undefined) {
        if (isDeepStrictEqual(known.written, definition)) continue;
        throw configError('SLUICE_DUPLICATE_LIMIT', messages.definedTwice(name));
      }
      const inModule = this.modulePlaces.get(name);
      if (inModule !== undefined)
        throw configError('SLUICE_DUPLICATE_LIMIT', messages.nameOfModule(`${location}.${name}`, name, inModule));
      const owner = isObject(definition) ? undefined : ownerOfOption(name);
      if (owner !== undefined) throw configError('SLUICE_UNKNOWN_OPTION', messages.optionAsName(location, name, owner));
      const declaration = { location: `${location}.${name}`, namespace: '', name };
      const limit = this.compileNamed(definition, declaration, name);
      if (limit.rule.name !== name) {
        throw wrongOption(declaration.location, 'name', limit.rule.name, `'${name}' or none`);
      }
      this.defined.set(name, limit);
    }
    this.onDefined();
  }

  /** Adds limits that only a policy defines. */
  defineByPolicy(limits: ReadonlyMap<string, AddedLimit>): void {
    for (const [name, { policy, rule }] of limits) {
      const declaration = { location: policy.place, namespace: '', name };
      const definition = policy.options as LimitDefinition;
      this.defined.set(name, namedLimit(undefined, definition, declaration, this.linked(rule, declaration), policy));
    }
    if (limits.size > 0) this.onDefined();
  }

  private compileNamed(written: LimitDefinition, declaration: Declaration, name: string | undefined): NamedLimit {
    const policy = name === undefined ? undefined : this.policy?.limits.get(name);
    const definition = policy === undefined ? written : withPolicy(written, policy);
    const { location } = declaration;
    const place = { ...declaration, location: policy?.place ?? location };
    const rule = this.linked(this.compiler.compile(definition, place), place);
    this.warnOfSeconds(definition, rule.name, place.location);
    return namedLimit(written, definition, declaration, rule, policy);
  }

  /** Lets a rule look up its ancestors later, when all modules have defined their limits. */
  private linked(rule: Rule, { location }: Declaration): Rule {
    if (rule.configured.parent === undefined) return rule;
    this.parents.add(rule.configured.parent);
    rule.findAncestors = () =>
      ancestorsOf(rule, { names: this.names, find: (name) => this.defined.get(name)?.rule }, location);
    return rule;
  }

  /** Throws `RateLimitConfigError` if a named limit can't be changed like this because it has children. */
  refuseChange(name: string | undefined, limit: CompiledLimit, location: string): void {
    if (name !== undefined && this.parents.has(name)) refusePlanOfParent(limit, location);
  }

  /** The rule of a limit, given by name or definition. */
  rule(limit: string | LimitDefinition, declaration: Declaration): Rule {
    if (typeof limit === 'string') {
      const known = this.defined.get(limit);
      if (known !== undefined) return known.rule;
      throw configError('SLUICE_UNKNOWN_LIMIT', this.unknown(declaration.location, limit));
    }
    const { namespace } = declaration;
    const written = this.written(limit, declaration);
    const known = written.get(namespace);
    if (known !== undefined) return known;
    const { reading } = written;
    const equal = declaration.onRoutes === true ? undefined : reading.known(namespace);
    const rule = equal ?? this.linked(this.compiler.declared(reading, declaration), declaration);
    // Only functions create new objects again and again.
    if (declaration.onRoutes !== true) reading.keep(namespace, rule);
    reading.anywhere = undefined;
    this.noteDeclared(rule, reading, declaration);
    written.set(namespace, rule);
    return rule;
  }

  /**
   * Checks a limit of a route without creating the route's rule. Returns a rule that belongs to no place, or `undefined` if the route's rule
   * has to be created for that.
   */
  checkOnRoute(limit: LimitDefinition, location: string): Rule | undefined {
    const place: Declaration = { location, namespace: '', onRoutes: true };
    const { reading } = this.written(limit, place);
    if (!reading.isAlikeOnRoutes) return undefined;
    const rule = this.withoutPlace(reading, place);
    this.noteDeclared(rule, reading, place);
    return rule;
  }

  /**
   * Warns if a limit is most likely a mistake where it is declared, and remembers which keys it takes. If the rule of a route is created at
   * its first request, this runs again, which changes nothing: each warning is logged once.
   */
  private noteDeclared(rule: Rule, reading: LimitReading, { location, onRoutes, inCall }: Declaration): void {
    this.warnOfName(rule.name, location);
    if (inCall !== true) this.reportSeconds(reading.likelySeconds, rule.name, location);
    // Once a route has a limit without a `key`, code might use it with any text, so lists have to accept any key.
    if ((onRoutes === true && rule.settings.hasKey !== true) || takesAnyKey(rule)) this.othersTakeAnyKey = true;
    if (countsAddresses(rule, onRoutes === true || rule.countsRequests)) this.othersCountAddresses = true;
  }

  /** The message for a name that no defined limit has. */
  unknown(location: string, name: string): string {
    const inModule = this.modulePlaces.get(name);
    return inModule === undefined
      ? messages.unknownName(location, name, this.names)
      : messages.alreadyApplies(location, name, inModule);
  }

  /** Warns once if an inline limit has the name of a defined one, since users may mistake it for that one. */
  private warnOfName(name: string, location: string): void {
    const defined = this.defined.get(name);
    if (defined === undefined || this.namedAgain.has(name)) return;
    this.namedAgain.add(name);
    logger.warn(messages.otherOfName(location, name, defined.declaration.location));
  }

  /** Warns once per place about numbers that are most likely meant as seconds. */
  warnOfSeconds(definition: LimitDefinition, name: string, location: string): void {
    const algorithm = algorithms.get(definition.algo);
    if (algorithm === undefined) return;
    this.reportSeconds(likelySeconds(definition, optionsOf(algorithm)), name, location);
  }

  private reportSeconds(found: readonly LikelySeconds[], name: string, location: string): void {
    for (const { option, got } of found) {
      this.log.warn(optionMessages.likelySeconds(`${location}.${option}`, got, name));
    }
  }

  /**
   * A rule of a limit of routes, given by name or definition, for uses where the place does not matter.
   * @param location for messages, since the limit is read only once
   */
  anywhere(limit: string | LimitDefinition, location: string): Rule {
    const place: Declaration = { location, namespace: '', onRoutes: true };
    if (typeof limit === 'string') return this.rule(limit, place);
    return this.withoutPlace(this.written(limit, place).reading, place);
  }

  private withoutPlace(reading: LimitReading, place: Declaration): Rule {
    return (reading.anywhere ??= this.linked(this.compiler.declared(reading, place), place));
  }

  /** Returns true if a limit of routes needs the interceptor after the guards. */
  needsInterceptor(limit: string | LimitDefinition, location: string): boolean {
    // Most limits needn't be compiled for that, as they are once more for each of their places.
    const place: Declaration = { location, namespace: '', onRoutes: true };
    const known = typeof limit === 'string' ? undefined : this.written(limit, place).reading.needsInterceptor;
    return known ?? this.anywhere(limit, location).needsInterceptor;
  }

  private written(limit: LimitDefinition, declaration: Declaration): WrittenLimit {
    // A limit on routes may have options that are not allowed elsewhere.
    const { location, namespace, onRoutes = false } = declaration;
    const byObject = onRoutes ? this.onRoutes : this.elsewhere;
    const known = typeof limit === 'object' && limit !== null ? byObject.get(limit) : undefined;
    if (known !== undefined) return known;
    const rate = Object.hasOwn(declaration, 'rate') && { rate: declaration.rate };
    const written = new WrittenLimit(this.compiler.read(limit, { location, namespace, onRoutes, ...rate }));
    byObject.set(limit, written);
    return written;
  }
}

/** An object that defines a limit, and its rules by namespace. Most objects are declared in one place only. */
class WrittenLimit {
  private namespace: string | undefined;
  private rule: Rule | undefined;
  private others: Map<string, Rule> | undefined;

  constructor(readonly reading: LimitReading) {}

  get(namespace: string): Rule | undefined {
    return namespace === this.namespace ? this.rule : this.others?.get(namespace);
  }

  set(namespace: string, rule: Rule): void {
    if (this.namespace === undefined) [this.namespace, this.rule] = [namespace, rule];
    else (this.others ??= new Map()).set(namespace, rule);
  }
}

/** The name of a limit of the module; `undefined` for a function or class that finds limits. */
function nameInModule(spec: NamedLimit | ByRequest): string | undefined {
  if ('rule' in spec) return spec.rule.name;
  return typeof spec === 'function' ? undefined : spec.name;
}

function namedLimit(
  written: LimitDefinition | undefined,
  definition: LimitDefinition,
  declaration: Declaration,
  rule: Rule,
  policy: PolicyLimit | undefined,
): NamedLimit {
  return { written, first: definition, definition, limit: rule.configured, policy, declaration, rule };
}
