import type { LimitRegistry } from '../../app/rules/limit-registry.js';
import type { DeclarationSite } from '../../app/rules/route-rules.js';
import type { Rule } from '../../app/rules/rule.js';
import type { LimitOrigin } from './explanation.js';

/** The level of a site of a route: the module's is the first, the method's the last, and classes are between them. */
export function levelName(index: number, count: number): 'module' | 'controller' | 'handler' {
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
