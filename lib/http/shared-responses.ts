import type { CompiledLimit } from '../limits/compiled-limit.js';
import { toCheckResult, tighter } from '../limits/check-result.js';
import type { CheckResult, Decision } from '../limits/decision.js';

/** The decision of each limit on the calls that a response answers. */
const decided = new WeakMap<object, Map<CompiledLimit, Decision>>();

/** The result that a response of several calls describes: of each limit, the tightest decision. */
export function combineResults(
  response: object,
  { decisions }: CheckResult,
  limits: readonly CompiledLimit[],
): { readonly result: CheckResult; readonly limits: readonly CompiledLimit[] } {
  let all = decided.get(response);
  if (all === undefined) decided.set(response, (all = new Map<CompiledLimit, Decision>()));
  for (const [index, limit] of limits.entries()) {
    const [known, decision] = [all.get(limit), decisions[index]];
    if (decision !== undefined) all.set(limit, known === undefined ? decision : tightest(known, decision));
  }
  const shown = [...all.keys()];
  return { result: toCheckResult([...all.values()], shown), limits: shown };
}

function tightest(one: Decision, other: Decision): Decision {
  if (one.allowed !== other.allowed) return one.allowed ? other : one;
  if (!one.allowed) return other.retryAfterMs > one.retryAfterMs ? other : one;
  return tighter(one, other);
}
