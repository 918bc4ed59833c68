import { type DeclaredLevel, isSource, type RuleSource } from '../rules/plan.js';
import type { Rule } from '../rules/rule.js';
import type { LeftOutLimit, LimitOrigin } from './explanation.js';
import { levelName, type Origins } from './origins.js';

/** A limit that applies. */
export interface TracedRule {
  readonly rule: Rule;
  readonly origin: LimitOrigin;
  /** The origins of the limits of the same name that it replaces, the farthest first. */
  readonly replaces: LimitOrigin[];
}

/** A limit that does not apply. */
export interface LeftOutRule extends LeftOutLimit {
  readonly rule: Rule;
}

/** What applies to a route, and what does not. */
export interface Trace {
  readonly inForce: TracedRule[];
  readonly leftOut: LeftOutRule[];
}

/** Merges the levels of a route as its rules do, and keeps what was left out. `answers`: what functions returned. */
export function trace(
  levels: readonly DeclaredLevel[],
  answers: ReadonlyMap<RuleSource, readonly Rule[]>,
  origins: Origins,
): Trace {
  const merged = new Map<string, TracedRule>();
  const leftOut: LeftOutRule[] = [];
  for (const [index, level] of levels.entries()) {
    for (const { rule, origin } of skipped(level, merged)) {
      leftOut.push({ rule, name: rule.name, origin, because: 'skipped', by: skipOf(level) });
      merged.delete(rule.name);
    }
    const kind = levelName(index, levels.length);
    for (const spec of level.specs) {
      const rules = isSource(spec) ? (answers.get(spec) ?? []) : [spec];
      for (const rule of rules) {
        const origin: LimitOrigin = origins.ofLevel(rule, level, kind);
        if (isSource(spec)) origin.byFunction = true;
        const before = merged.get(rule.name);
        // A defined limit that is named twice is one limit.
        const isReplaced = before !== undefined && before.rule !== rule;
        if (isReplaced) {
          const { rule: replaced, origin: from } = before;
          leftOut.push({ rule: replaced, name: rule.name, origin: from, because: 'replaced', by: level.location });
        }
        const replaces = [...(before?.replaces ?? []), ...(isReplaced ? [before.origin] : [])];
        merged.set(rule.name, { rule, origin, replaces });
      }
    }
  }
  return { inForce: [...merged.values()], leftOut };
}

/** What a level skips of the levels farther out. */
function skipped({ skips }: DeclaredLevel, merged: ReadonlyMap<string, TracedRule>): TracedRule[] {
  return skips === 'all' ? [...merged.values()] : skips.flatMap((name) => merged.get(name) ?? []);
}

function skipOf({ location, skips }: DeclaredLevel): string {
  const names = skips === 'all' ? '' : skips.map((name) => `'${name}'`).join(', ');
  return location.replace('@RateLimit', `@SkipRateLimit(${names})`);
}
