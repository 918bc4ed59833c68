import type { WithinOptions } from '../../../engine/limits/consume-options.js';
import type { Rule } from '../rule.js';

/**
 * Splits an identity such as `o1/t1/u1`, as `shownIdentity` displays it, into the limit's own key and the keys of its ancestors.
 * `undefined` if there are too few parts, or if one of them is a hash.
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
