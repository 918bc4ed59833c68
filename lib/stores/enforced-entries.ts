import { answerWith, decide, decided } from './decide.js';
import { openDecision } from './store-decision.js';
import type { CheckEntry } from '../limits/counter.js';
import type { Check, CheckAnswer, Store, StoreDecision } from './store.js';

/** Decides a check from code. Limits that are switched off are not asked. */
export function decideEnforced(store: Store, check: Check, answer: CheckAnswer): void {
  if (!check.entries.some(isOff)) decide(store, check, answer);
  else answerWith(decideOthers(store, check), answer);
}

/** The same, for callers that wait for the answer. */
export function decidedEnforced(store: Store, check: Check): Promise<StoreDecision[]> {
  return check.entries.some(isOff) ? decideOthers(store, check) : decided(store, check);
}

async function decideOthers(store: Store, check: Check): Promise<StoreDecision[]> {
  const asked = check.entries.filter((entry) => !isOff(entry));
  const decisions = asked.length === 0 ? [] : await decided(store, { ...check, entries: asked });
  return check.entries.map(({ limit }) => (limit.off ? openDecision(limit) : decisions.shift()!));
}

function isOff({ limit }: CheckEntry): boolean {
  return limit.off;
}
