import type { ExecutionContext } from '@nestjs/common';
import { isSource, type Plan, type RuleSource } from '../rules/plan.js';
import type { Rule } from '../rules/rule.js';
import type { ExplainedFunction } from './explanation.js';
import { levelName } from './origins.js';
import { reasons } from './reasons.js';

/** The functions of a route that still apply, and where they are declared. */
function sourcesOf({ declared, levels }: Plan): { source: RuleSource; origin: ExplainedFunction['origin'] }[] {
  return levels.flatMap((level) => {
    const origin = { level: levelName(declared.indexOf(level), declared.length), location: level.location };
    return level.specs.filter(isSource).map((source) => ({ source, origin }));
  });
}

/** The functions of a route that no request calls. */
export function unaskedSources(plan: Plan): ExplainedFunction[] {
  return sourcesOf(plan).map(({ origin }) => ({ origin, asked: false, reason: reasons.functionUnasked() }));
}

/** Calls the functions of a route. One that fails adds no limits here, and fails its request. */
export async function askSources(plan: Plan, context: ExecutionContext) {
  const answers = new Map<RuleSource, readonly Rule[]>();
  const functions: ExplainedFunction[] = [];
  for (const { source, origin } of sourcesOf(plan)) {
    try {
      const rules = source.rules(await source.ask(context));
      answers.set(source, rules);
      functions.push({ origin, asked: true, gave: rules.map(({ name }) => name) });
    } catch (error) {
      functions.push({ origin, asked: true, reason: reasons.sourceFailed(error) });
    }
  }
  return { answers, functions };
}
