import { tighter } from '../limits/check-result.js';
import type { CheckResult } from '../limits/decision.js';
import type { RuleEntry } from '../rules/rule.js';
import { checkResultOf } from '../stores/store-decision.js';
import type { StoreDecision } from '../stores/store.js';

/** Sums up the decisions of entries, in one pass where all allow: there is nothing to leave out of most of them. */
export function sumUp(entries: readonly RuleEntry[], decisions: readonly StoreDecision[]): CheckResult {
  let tightest: StoreDecision | undefined;
  let delayMs = 0;
  for (let index = 0; index < decisions.length; index++) {
    const decision = decisions[index]!;
    if (!decision.allowed || entries[index]!.limit.shadow || isForStore(decision)) return inFull(entries, decisions);
    tightest = tightest === undefined ? decision : tighter(tightest, decision);
    if (decision.delayMs > delayMs) delayMs = decision.delayMs;
  }
  return { allowed: true, decisions: decisions.slice(), tightest: tightest!, delayMs };
}

/** Whether a decision holds what only stores are told. */
function isForStore({ ticket, chargedAt }: StoreDecision): boolean {
  return ticket !== undefined || chargedAt !== undefined;
}

function inFull(entries: readonly RuleEntry[], decisions: readonly StoreDecision[]): CheckResult {
  return checkResultOf(
    decisions,
    entries.map(({ limit }) => limit),
  );
}
