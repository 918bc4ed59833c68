import type { ExecutionContext } from '@nestjs/common';
import { isSource, type RouteRules, type RuleSource } from '../../app/rules/route-rules.js';
import type { Rule } from '../../app/rules/rule.js';
import type { ExplainedFunction } from './explanation.js';
import { levelName } from './origins.js';
import { reasons } from './reasons.js';

/** The functions of a route that still apply, and their places. */
function sourcesOf({
  declared,
  sites: levels,
}: RouteRules): { source: RuleSource; origin: ExplainedFunction['origin'] }[] {
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
  const answers = new Map<RuleSource, readonly Rule[]>();
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
