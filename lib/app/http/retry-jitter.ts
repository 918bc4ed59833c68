import type { CheckResult, Decision } from '../../engine/limits/decision.js';

/** A rejection with all waits multiplied by `1 + share` for the headers, so that clients do not all return at once. */
export function spreadWaits(result: CheckResult, share: number): CheckResult {
  const decisions = result.decisions.map((decision): Decision =>
    decision.allowed ? decision : { ...decision, retryAfterMs: decision.retryAfterMs * (1 + share) },
  );
  const tightest = decisions[result.decisions.indexOf(result.tightest)] ?? result.tightest;
  return { ...result, decisions, tightest };
}
