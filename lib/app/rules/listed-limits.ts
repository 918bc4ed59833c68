import type { LimitDefinition } from '../config/limit-definition.js';
import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { askMessages } from '../../engine/errors/messages/ask.js';
import { withinMessages } from '../../engine/errors/messages/within.js';
import { versionsOf } from '../../engine/limits/limit-feature.js';
import type { Rule } from './rule.js';

/** Reads one limit, or a list of them: names or definitions. Throws `RateLimitConfigError`. */
export function listedLimits<L = string | LimitDefinition>(given: unknown, location: string): readonly L[] {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (list.length > 0 && list.every(isLimit)) return list as L[];
  throw new RateLimitConfigError(askMessages.noLimits(location, given));
}

/**
 * Refuses a limit that is listed twice, has versions for requests, or is within another one: nothing would determine the version
 * or the other keys. Throws `RateLimitConfigError`.
 */
export function refuseWrongList(rules: readonly Pick<Rule, 'name' | 'limit'>[], location: string): void {
  for (const { limit } of rules) {
    for (const versions of versionsOf(limit)) {
      if (versions.notListed !== undefined) throw new RateLimitConfigError(versions.notListed(location));
    }
  }
  const nested = rules.find(({ limit }) => limit.parent !== undefined);
  if (nested !== undefined) throw new RateLimitConfigError(withinMessages.notHere(location, nested.name));
  const ids = rules.map(({ limit }) => limit.id);
  const twice = rules.find((_, index) => ids.indexOf(ids[index]!) < index);
  if (twice !== undefined) throw new RateLimitConfigError(askMessages.sameLimitTwice(location, twice.name));
}

function isLimit(limit: unknown): boolean {
  return typeof limit === 'string' ? limit !== '' : typeof limit === 'object' && limit !== null;
}
