import type { Priority } from '../../engine/limits/arguments.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { ListedEntry } from '../../app/overrides/lists/list.js';
import type { Rule } from '../../app/rules/rule.js';
import type { LimitStatus } from './explanation.js';
import { reasons } from './reasons.js';

/** The check that a limit would make for a request. */
export interface AskedLimit {
  readonly status: LimitStatus;
  /** The limit that decides for this identity. */
  readonly limit: CompiledLimit;
  readonly identity?: string | undefined;
  readonly cost?: number | undefined;
  readonly priority?: Priority | undefined;
  /** The outcome for a request without a key. */
  readonly note?: string | undefined;
  readonly reason?: string | undefined;
  /** The list entry that decides instead of the limit. */
  readonly list?: ListedEntry | undefined;
  /** True if the request is rejected because something is missing, before any limit is checked. */
  readonly refuses?: boolean;
}

/** A call from code, which provides all necessary values. */
export function askedFromCode(
  rule: Rule,
  identity: string | undefined,
  cost: number,
  share: string | undefined,
): AskedLimit {
  if (identity === undefined) {
    const { limit } = rule;
    return { status: 'depends on the request', limit, cost, reason: reasons.keysAboveNotGiven(rule) };
  }
  const whole = rule.usualLimit(identity);
  // Only a route determines which of the counters is used.
  if (rule.perRoute && rule.ofAll === undefined) {
    return { status: 'depends on the request', limit: whole, cost, reason: reasons.countsPerRoute() };
  }
  if (whole.off) return { status: 'off', limit: whole, identity, cost, reason: reasons.isOff() };
  const { limit, failure } = ofShare(rule, whole, share);
  if (failure !== undefined) return { status: 'fails', limit, identity, cost, reason: failure };
  return { status: 'asked', limit, identity, cost, priority: rule.fixedPriority };
}

/** The version of the limit for callers with this `share`, if the limit uses shares, or the reason why it is unknown. */
export function ofShare(
  rule: Rule,
  limit: CompiledLimit,
  share: string | undefined,
): { limit: CompiledLimit; failure?: string } {
  const { trait } = rule.settings;
  if (trait?.option !== 'share' || share === undefined) return { limit };
  try {
    return { limit: limit.meet(trait.metBy(share, limit)) };
  } catch (error) {
    return { limit, failure: reasons.functionFailed(trait.calls, error) };
  }
}
