import { messages } from '../errors/messages.js';
import type { Check, CheckAnswer, Store, StoreDecision } from './store.js';

/** Asks a store for one decision of all limits of a check: in the fewest steps that it knows. */
export function decide(store: Store, check: Check, answer: CheckAnswer): void {
  if (store.decide !== undefined) store.decide(check, answer);
  else answerWith(checkOnly(store, check), answer);
}

/** The same, for callers that wait for the answer. */
export function decided(store: Store, check: Check): Promise<StoreDecision[]> {
  return new Promise((resolve, reject) => decide(store, check, { decided: resolve, failed: reject }));
}

/** Hands a promised answer on. */
export function answerWith(decisions: Promise<StoreDecision[]>, answer: CheckAnswer): void {
  decisions.then(
    (made) => answer.decided(made),
    (error: unknown) => answer.failed(error),
  );
}

/** A store of the app may throw at once, or give no decisions. */
async function checkOnly(store: Store, check: Check): Promise<StoreDecision[]> {
  const decisions: unknown = (await store.check([check]))?.[0];
  if (Array.isArray(decisions) && decisions.length === check.entries.length) return decisions as StoreDecision[];
  throw new TypeError(messages.noDecisions(decisions, check.entries.length));
}
