import { limitInfo } from '../../../app/http/limit-info.js';
import { type CheckedLimit, type Decision, tighter } from '../../../engine/limits/decision.js';

/** The cost of an operation as the client sees it, in `extensions.cost`. */
export interface CostReport {
  /** The points that were reserved before the operation ran. */
  readonly requestedQueryCost: number;
  /** The points that the operation was charged, based on the values it returned; `null` if it was rejected. */
  readonly actualQueryCost: number | null;
  /** The limit with the fewest points left among those that counted the operation; hidden limits are left out. */
  readonly throttleStatus?: ThrottleStatus;
}

/** The points of a client under one limit. */
export interface ThrottleStatus {
  /** The name of the limit. */
  readonly limit: string;
  /** The maximum number of points that an operation can cost. */
  readonly maximumAvailable: number;
  /** The points that are left. */
  readonly currentlyAvailable: number;
  /** The points that come back each second, on average. */
  readonly restoreRate: number;
}

/**
 * Reports the cost of an operation.
 *
 * @param actual `null` if it was rejected
 */
export function reportOf(
  requested: number,
  actual: number | null,
  limits: readonly CheckedLimit[],
  decisions: readonly Decision[],
): CostReport {
  const [first, ...others] = decisions.filter((_, index) => !limits[index]!.limit.hidden);
  const costs = { requestedQueryCost: requested, actualQueryCost: actual };
  if (first === undefined) return costs;
  const tightest = others.reduce(tighter, first);
  const { limit } = limits[decisions.indexOf(tightest)]!;
  const { quota, remaining } = tightest;
  // Only points that were taken are refunded.
  const back = actual === null || !tightest.allowed ? 0 : requested - actual;
  const rate = (quota / limitInfo(limit, Date.now()).windowMs) * 1000;
  return {
    ...costs,
    throttleStatus: {
      limit: tightest.limit,
      maximumAvailable: quota,
      currentlyAvailable: Math.min(quota, Math.max(0, remaining + back)),
      restoreRate: Number(rate.toPrecision(6)),
    },
  };
}
