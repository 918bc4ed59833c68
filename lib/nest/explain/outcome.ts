import type { ExplainedLimit, ExplainedOutcome, LimitStatus } from './explanation.js';
import { reasons } from './reasons.js';

/** Limits that are checked together. */
export interface WeighedGroup {
  readonly limits: readonly Weighed[];
  /** The reason why the request fails before they are checked. */
  readonly failure: string | undefined;
}

/** A limit, with a flag that is true if it rejects a request because something is missing, before the limit is checked. */
export interface Weighed {
  readonly limit: ExplainedLimit;
  readonly refuses: boolean;
}

/**
 * The outcome of a request whose limits are checked in consecutive groups. If a limit rejects, its group charges nothing, and later groups
 * are not checked.
 *
 * @param unknown true if further limits may apply
 */
export function outcomeOf(groups: readonly WeighedGroup[], unknown: boolean): ExplainedOutcome {
  let delayMs = 0;
  let open: string | undefined;
  for (const { limits: group, failure } of groups) {
    if (failure !== undefined) return { verdict: 'fails', ...STOPPED, reason: failure };
    const stopped = stoppedBy(group);
    if (stopped !== undefined) return stopped;
    const denied = deniedBy(group);
    if (denied !== undefined) return denied;
    const refusing = group.filter(({ limit }) => isEnforced(limit) && limit.decision?.allowed === false);
    const sure = refusing.filter(({ limit }) => limit.status === 'asked');
    if (sure.length > 0) {
      const waits = sure.map(({ limit }) => limit.decision!.retryAfterMs);
      const retryAfterMs = waits.includes(null) ? null : Math.max(...(waits as number[]));
      return { verdict: 'refused', refusedBy: sure.map(({ limit }) => limit.name), retryAfterMs, delayMs: 0 };
    }
    const enforced = group.map(({ limit }) => limit).filter(isEnforced);
    const unsure = enforced.find((limit) => isOpen(limit));
    if (unsure !== undefined) open ??= `'${unsure.name}': ${unsure.reason ?? ''}`;
    delayMs += Math.max(0, ...enforced.map(({ decision }) => decision?.delayMs ?? 0));
  }
  if (unknown) open ??= reasons.dependsOnFunctions();
  const passed = { refusedBy: [], retryAfterMs: 0, delayMs };
  return open === undefined ? { verdict: 'allowed', ...passed } : { verdict: 'unknown', ...passed, reason: open };
}

/** The statuses of limits that affect the outcome. */
const ENFORCED: readonly LimitStatus[] = ['asked', 'listed', 'depends on the request'];
const STOPPED = { refusedBy: [], retryAfterMs: null, delayMs: 0 };

/** The reason why a request ends before its limits are checked: a failing function of the app, or a missing key. */
function stoppedBy(group: readonly Weighed[]): ExplainedOutcome | undefined {
  const first = group.find(({ limit, refuses }) => refuses || limit.status === 'fails');
  if (first === undefined) return undefined;
  const { name, status, reason = '' } = first.limit;
  const stopped = { ...STOPPED, reason: `'${name}': ${reason}` };
  return status === 'fails' ? { verdict: 'fails', ...stopped } : { verdict: 'refused', ...stopped, refusedBy: [name] };
}

/** If a list denies in place of one limit, the others are not checked. */
function deniedBy(group: readonly Weighed[]): ExplainedOutcome | undefined {
  const denying = group
    .map(({ limit }) => limit)
    .filter((limit) => isEnforced(limit) && limit.status === 'listed' && limit.decision?.allowed === false);
  const list = denying[0]?.list;
  return list && { verdict: 'denied', ...STOPPED, refusedBy: denying.map(({ name }) => name), list };
}

/** Returns true if a limit can reject or delay a request. */
function isEnforced({ mode, status }: ExplainedLimit): boolean {
  return mode.mode === 'enforce' && ENFORCED.includes(status);
}

/** Returns true if its decision is unknown. */
function isOpen({ status, decision }: ExplainedLimit): boolean {
  return decision === undefined || (status === 'depends on the request' && !decision.allowed);
}
