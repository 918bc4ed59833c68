import { type CheckedLimit, type CheckResult, toCheckResult } from '../../engine/limits/decision.js';

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
