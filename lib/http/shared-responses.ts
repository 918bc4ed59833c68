import type { CompiledLimit } from '../limits/compiled-limit.js';
import { toCheckResult, tighter } from '../limits/check-result.js';
import type { CheckResult, Decision } from '../limits/decision.js';

/** By response, what each limit said to the calls that it answers. */
const told = new WeakMap<object, Map<CompiledLimit, Decision>>();

/** What a response has to tell that answers several calls: of each limit, the tightest decision. */
export function together(
  response: object,
  { decisions }: CheckResult,
  limits: readonly CompiledLimit[],
): { readonly result: CheckResult; readonly limits: readonly CompiledLimit[] } {
  let all = told.get(response);
  if (all === undefined) told.set(response, (all = new Map<CompiledLimit, Decision>()));
  for (const [index, limit] of limits.entries()) {
    const [known, decision] = [all.get(limit), decisions[index]];
    if (decision !== undefined) all.set(limit, known === undefined ? decision : tightest(known, decision));
  }
  const met = [...all.keys()];
  return { result: toCheckResult([...all.values()], met), limits: met };
}

function tightest(one: Decision, other: Decision): Decision {
  if (one.allowed !== other.allowed) return one.allowed ? other : one;
  if (!one.allowed) return other.retryAfterMs > one.retryAfterMs ? other : one;
  return tighter(one, other);
}
