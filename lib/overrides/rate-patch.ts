import { algorithms } from '../algorithms/index.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { planMessages } from '../errors/messages/plan.js';
import type { ExactLimit } from '../config/limit-definition.js';
import { ownCandidate } from '../rules/candidate-options.js';
import type { RatePatch } from './override.js';

/** The options that change with a rate, for limits of any algorithm. */
const CHANGEABLE: readonly string[] = ['candidate', 'ceiling', 'lends'];

/**
 * Applies a patch to a definition. The compiler checks the values of the options. The candidate is that of the definition, unless
 * the patch has another one, which then patches the changed limit.
 */
export function withPatch(definition: ExactLimit, patch: RatePatch): ExactLimit {
  const { candidate = definition.candidate && ownCandidate(definition, definition.candidate), ...options } = patch;
  return { ...definition, ...options, candidate: candidate ?? undefined } as ExactLimit;
}

/** Reads the options that a patch sets. Refuses unknown options, those of other algorithms, and an empty patch. */
export function readPatch({ algo }: ExactLimit, patch: unknown, location: string): RatePatch {
  const own = algorithms.get(algo)?.options ?? [];
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) {
    throw new RateLimitConfigError(messages.wrongPatch(location, patch, own));
  }
  const set = Object.entries(patch).filter(([, value]) => value !== undefined);
  for (const [option, value] of set) {
    // Other instances have to get it as data.
    if (option === 'anchor' && typeof value === 'function') {
      throw new RateLimitConfigError(messages.wrongOption(location, option, value, planMessages.fixedAnchorWants()));
    }
    if (own.includes(option) || CHANGEABLE.includes(option)) continue;
    const owners = algorithms.withOption(option);
    throw new RateLimitConfigError(
      owners.length > 0
        ? messages.foreignOption(location, option, algo, own, owners)
        : messages.unchangeable(location, option, own),
    );
  }
  if (set.length === 0) throw new RateLimitConfigError(messages.wrongPatch(location, patch, own));
  return Object.fromEntries(set);
}
