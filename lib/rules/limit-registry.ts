import { isDeepStrictEqual } from 'node:util';
import { Inject, Injectable } from '@nestjs/common';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import type { LimitDefinition } from '../config/limit-definition.js';
import { RATE_LIMIT_SETTINGS } from '../config/tokens.js';
import { type RateLimitSettings } from '../config/settings.js';
import { type Rule } from './rule.js';
import { type Declaration, RuleCompiler } from './rule-compiler.js';
import { ValueCache } from '../util/value-cache.js';

/** The namespace of the limits that apply to every route. No class has such a name. */
const MODULE_NAMESPACE = '@module';

/** A limit that was given a name of its own, as it was written. */
export interface NamedLimit {
  readonly definition: LimitDefinition;
  readonly declaration: Declaration;
  readonly rule: Rule;
}

/** Knows the limits that have no place of their own: those of the module, and those that are defined by name. */
@Injectable()
export class LimitRegistry {
  /** The limits that apply to every route. */
  readonly moduleRules: readonly Rule[];
  /** Is called when limits were added. */
  onDefined: () => void = () => undefined;
  private readonly moduleLimits: readonly NamedLimit[];
  private readonly defined = new Map<string, NamedLimit>();
  /** Limits that functions gave or code passed, by namespace: most give the same objects again and again. */
  private readonly compiled = new WeakMap<LimitDefinition, Map<string, Rule>>();
  /** The same for functions that make new objects each time. */
  private readonly equal = new ValueCache<Rule>();

  constructor(
    @Inject(RATE_LIMIT_SETTINGS) { options }: RateLimitSettings,
    private readonly compiler: RuleCompiler,
  ) {
    const moduleLimits = (options.limits ?? []).map((definition, index): NamedLimit => {
      const declaration = { location: `limits[${index}]`, namespace: MODULE_NAMESPACE, everywhere: true };
      return { definition, declaration, rule: compiler.compile(definition, declaration) };
    });
    this.moduleRules = moduleLimits.map(({ rule }) => rule);
    this.moduleLimits = moduleLimits.filter(({ definition }) => definition.name !== undefined);
    const names = new Set<string>();
    for (const { name } of this.moduleRules) {
      if (names.has(name)) throw new RateLimitConfigError(messages.twice('limits', name));
      names.add(name);
    }
    this.define(options.define ?? {}, 'define');
  }

  /** The names that can be referred to. */
  get names(): string[] {
    return [...this.defined.keys()];
  }

  /** The limits whose rates can be changed by their names: those that are defined, and those of the module that have one. */
  get named(): NamedLimit[] {
    return [...this.moduleLimits, ...this.defined.values()];
  }

  has(name: string): boolean {
    return this.defined.has(name);
  }

  /** Adds definitions. The same one may be added again, as when a feature is imported twice. */
  define(definitions: Readonly<Record<string, LimitDefinition>>, location: string): void {
    for (const [name, definition] of Object.entries(definitions)) {
      const known = this.defined.get(name);
      if (known !== undefined) {
        if (isDeepStrictEqual(known.definition, definition)) continue;
        throw new RateLimitConfigError(messages.definedTwice(name));
      }
      const declaration = { location: `${location}.${name}`, namespace: '', name };
      const rule = this.compiler.compile(definition, declaration);
      if (rule.name !== name) {
        throw new RateLimitConfigError(
          messages.wrongOption(declaration.location, 'name', rule.name, `'${name}' or none`),
        );
      }
      this.defined.set(name, { definition, declaration, rule });
    }
    this.onDefined();
  }

  /** The limit of a name, or of a definition. */
  rule(limit: string | LimitDefinition, declaration: Declaration): Rule {
    if (typeof limit === 'string') {
      const known = this.defined.get(limit);
      if (known !== undefined) return known.rule;
      throw new RateLimitConfigError(messages.unknownName(declaration.location, limit, this.names));
    }
    const { location, namespace } = declaration;
    let rules = typeof limit === 'object' && limit !== null ? this.compiled.get(limit) : undefined;
    const known = rules?.get(namespace);
    if (known !== undefined) return known;
    const rule = this.equal.of([namespace, limit], () => this.compiler.compile(limit, { location, namespace }));
    if (rules === undefined) this.compiled.set(limit, (rules = new Map()));
    rules.set(namespace, rule);
    return rule;
  }
}
