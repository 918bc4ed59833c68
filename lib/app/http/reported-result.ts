import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import {
  type CheckedLimit,
  type CheckResult,
  type Decision,
  tighter,
  toCheckResult,
} from '../../engine/limits/decision.js';

import { getOrMake } from '../../engine/util/objects.js';

/** The part of a check that clients may see: the limits that aren't hidden, and their decisions. */
export interface ShownResult {
  readonly result: CheckResult;
  readonly limits: readonly CheckedLimit[];
}

/** Leaves out hidden limits; `undefined` if all are hidden. `result` has one decision for each of `limits`. */
export function shownOf(result: CheckResult, limits: readonly CheckedLimit[]): ShownResult | undefined {
  if (!limits.some(isHiddenLimit)) return { result, limits };
  const shown = limits.filter((each) => !isHiddenLimit(each));
  if (shown.length === 0) return undefined;
  const decisions = result.decisions.filter((_, index) => !isHiddenLimit(limits[index]!));
  return { result: { ...toCheckResult(decisions, shown), allowed: result.allowed }, limits: shown };
}

function isHiddenLimit({ limit }: CheckedLimit): boolean {
  return limit.hidden;
}

/** The decisions of each limit on the calls that share a response. */
const decided = new WeakMap<object, Map<CompiledLimit, Decision>>();

/** The result to report in a response to several calls: the tightest decision of each limit. */
export function combineResults(
  response: object,
  { decisions }: CheckResult,
  checked: readonly CheckedLimit[],
): { readonly result: CheckResult; readonly shown: readonly CheckedLimit[] } {
  const all = getOrMake(decided, response, () => new Map<CompiledLimit, Decision>());
  for (const [index, { limit }] of checked.entries()) {
    const [known, decision] = [all.get(limit), decisions[index]];
    if (decision !== undefined) all.set(limit, known === undefined ? decision : stricter(known, decision));
  }
  const shown = [...all.keys()].map((limit) => ({ limit }));
  return { result: toCheckResult([...all.values()], shown), shown };
}

function stricter(one: Decision, other: Decision): Decision {
  if (one.allowed !== other.allowed) return one.allowed ? other : one;
  if (!one.allowed) return other.retryAfterMs > one.retryAfterMs ? other : one;
  return tighter(one, other);
}

/** A rejection with all waits multiplied by `1 + share` for the headers, so that clients do not all return at once. */
export function spreadWaits(result: CheckResult, share: number): CheckResult {
  const decisions = result.decisions.map((decision): Decision =>
    decision.allowed ? decision : { ...decision, retryAfterMs: decision.retryAfterMs * (1 + share) },
  );
  const tightest = decisions[result.decisions.indexOf(result.tightest)] ?? result.tightest;
  return { ...result, decisions, tightest };
}
