import { isDeepStrictEqual } from 'node:util';
import { Inject, Injectable } from '@nestjs/common';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import type { LimitDefinition } from '../limit-definition.js';
import { RATE_LIMIT_SETTINGS, type RateLimitSettings } from '../rate-limit.settings.js';
import { type Rule } from './rule.js';
import { type Declaration, RuleCompiler } from './rule-compiler.js';

/** The scope of the limits that apply to every route. No class has such a name. */
const MODULE_SCOPE = '@module';

/** Knows the limits that have no place of their own: those of the module, and those that are defined by name. */
@Injectable()
export class LimitRegistry {
  /** The limits that apply to every route. */
  readonly moduleRules: readonly Rule[];
  private readonly defined = new Map<string, { readonly definition: LimitDefinition; readonly rule: Rule }>();
  /** Limits that functions gave or code passed, by scope: most give the same objects again and again. */
  private readonly compiled = new WeakMap<LimitDefinition, Map<string, Rule>>();

  constructor(
    @Inject(RATE_LIMIT_SETTINGS) { options }: RateLimitSettings,
    private readonly compiler: RuleCompiler,
  ) {
    this.moduleRules = (options.limits ?? []).map((definition, index) =>
      compiler.compile(definition, { place: `limits[${index}]`, scope: MODULE_SCOPE }),
    );
    this.define(options.define ?? {}, 'define');
  }

  /** The names that can be referred to. */
  get names(): string[] {
    return [...this.defined.keys()];
  }

  has(name: string): boolean {
    return this.defined.has(name);
  }

  /** Adds definitions. The same one may be added again, as when a feature is imported twice. */
  define(definitions: Readonly<Record<string, LimitDefinition>>, place: string): void {
    for (const [name, definition] of Object.entries(definitions)) {
      const known = this.defined.get(name);
      if (known !== undefined) {
        if (isDeepStrictEqual(known.definition, definition)) continue;
        throw new RateLimitConfigError(messages.definedTwice(name));
      }
      const declaration = { place: `${place}.${name}`, scope: '', name };
      const rule = this.compiler.compile(definition, declaration);
      if (rule.name !== name) {
        throw new RateLimitConfigError(messages.wrongOption(declaration.place, 'name', rule.name, `'${name}' or none`));
      }
      this.defined.set(name, { definition, rule });
    }
  }

  /** The limit of a name, or of a definition. */
  rule(limit: string | LimitDefinition, declaration: Declaration): Rule {
    if (typeof limit === 'string') {
      const known = this.defined.get(limit);
      if (known !== undefined) return known.rule;
      throw new RateLimitConfigError(messages.unknownName(declaration.place, limit, this.names));
    }
    const { place, scope } = declaration;
    let scopes = typeof limit === 'object' && limit !== null ? this.compiled.get(limit) : undefined;
    const known = scopes?.get(scope);
    if (known !== undefined) return known;
    const rule = this.compiler.compile(limit, { place, scope });
    if (scopes === undefined) this.compiled.set(limit, (scopes = new Map()));
    scopes.set(scope, rule);
    return rule;
  }
}
