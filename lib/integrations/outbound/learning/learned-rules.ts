import type { LimitDefinition } from '../../../app/config/limit-definition.js';
import { RateLimitConfigError } from '../../../engine/errors/errors.js';
import { outboundMessages } from '../../../engine/errors/messages/outbound.js';
import { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { refuseUnknown } from '../../../engine/options/check-options.js';
import type { LimitRegistry } from '../../../app/rules/limit-registry.js';
import { LearnedRule } from './learned-rule.js';

/** The value of `algo` for limits with a learned rate. */
const LEARNED = 'learned';
const KNOWN = ['algo', 'name'] as const;
/** The limit of a key before anything was learned about it: one call per second. */
const FIRST = { algo: 'gcra', rate: 60, interval: 60_000, burst: 1 } as const;

/** The limits of an app with a learned rate. */
export class LearnedRules {
  private readonly byName = new Map<string, LearnedRule>();
  private readonly byLineage = new Map<string, LearnedRule>();

  constructor(private readonly registry: LimitRegistry) {}

  /** Returns true for the definition of a limit with a learned rate. */
  static defines(definition: unknown): boolean {
    return typeof definition === 'object' && definition !== null && (definition as { algo?: unknown }).algo === LEARNED;
  }

  /** The rule of a definition; each name has only one. Throws `RateLimitConfigError`. */
  rule(definition: object, location: string): LearnedRule {
    refuseUnknown(location, definition, KNOWN);
    const { name } = definition as { name?: unknown };
    const known = this.byName.get(name as string);
    if (known !== undefined) return known;
    if (name === undefined)
      throw new RateLimitConfigError(outboundMessages.learnedWithoutName(location), { code: 'SLUICE_MISSING_OPTION' });
    if (this.registry.has(name as string)) {
      throw new RateLimitConfigError(outboundMessages.learnedIsDefined(location, name as string), {
        code: 'SLUICE_DUPLICATE_LIMIT',
      });
    }
    const { configured } = this.registry.rule({ ...FIRST, name } as LimitDefinition, { location, namespace: '' });
    const { shadow, onStoreError } = configured;
    const rule = new LearnedRule(new CompiledLimit(FIRST, { location, name: configured.name, shadow, onStoreError }));
    this.byName.set(rule.name, rule);
    this.byLineage.set(rule.limit.lineage, rule);
    return rule;
  }

  /** The rule that a limit belongs to, if its rate is learned. */
  of({ lineage }: CompiledLimit): LearnedRule | undefined {
    return this.byLineage.get(lineage);
  }
}
