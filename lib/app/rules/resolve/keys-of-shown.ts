import type { WithinOptions } from '../../../engine/limits/consume-options.js';
import type { Rule } from '../rule.js';

/**
 * Splits a key as `shownIdentity` displays it, `o1/t1/u1`, into the limit's own key and the keys of the limits it is within.
 * `undefined` if it names too few, or one by its hash.
 */
export function keysOfShown(
  rule: Rule,
  shown: string,
): { readonly key: string; readonly options: WithinOptions } | undefined {
  const { ancestors } = rule;
  if (ancestors.length === 0) return { key: shown, options: {} };
  const steps = shown.split('/');
  const above = steps.slice(0, ancestors.length);
  const key = steps.slice(ancestors.length).join('/');
  if (key === '' || above.some((step) => step === '' || step.startsWith('#'))) return undefined;
  const within = Object.fromEntries(ancestors.toReversed().map(({ name }, index) => [name, above[index]!]));
  return { key, options: { within } };
}
