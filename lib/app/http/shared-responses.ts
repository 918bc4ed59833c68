import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import {
  type CheckedLimit,
  type CheckResult,
  type Decision,
  tighter,
  toCheckResult,
} from '../../engine/limits/decision.js';

/** The decisions of each limit on the calls that share a response. */
const decided = new WeakMap<object, Map<CompiledLimit, Decision>>();

/** The result to report in a response to several calls: the tightest decision of each limit. */
export function combineResults(
  response: object,
  { decisions }: CheckResult,
  checked: readonly CheckedLimit[],
): { readonly result: CheckResult; readonly shown: readonly CheckedLimit[] } {
  let all = decided.get(response);
  if (all === undefined) decided.set(response, (all = new Map<CompiledLimit, Decision>()));
  for (const [index, { limit }] of checked.entries()) {
    const [known, decision] = [all.get(limit), decisions[index]];
    if (decision !== undefined) all.set(limit, known === undefined ? decision : tightest(known, decision));
  }
  const shown = [...all.keys()].map((limit) => ({ limit }));
  return { result: toCheckResult([...all.values()], shown), shown };
}

function tightest(one: Decision, other: Decision): Decision {
  if (one.allowed !== other.allowed) return one.allowed ? other : one;
  if (!one.allowed) return other.retryAfterMs > one.retryAfterMs ? other : one;
  return tighter(one, other);
}
