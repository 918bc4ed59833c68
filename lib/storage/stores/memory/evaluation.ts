import type { ProcessLoad } from '../../../engine/algorithms/algorithm.js';
import type { CheckEntry } from '../../../engine/limits/counter.js';
import type { StoreDecision } from '../store.js';
import type { View } from './counter-view.js';

/** Passes the request to an adaptive limit. */
export function tellAsker(
  view: View,
  { cost, priority = 'default' }: CheckEntry,
  load: ProcessLoad,
  peek: boolean,
): void {
  const { algorithm, parameters } = view.limit;
  algorithm.adapting!.asked(parameters, view.state, { cost, priority, load, peek });
}

/** Returns true if the cost of a view fits, ignoring blocks. */
export function fits({ limit, state, cost }: View): boolean {
  return (cost <= limit.quota || limit.varies) && limit.algorithm.fits(limit.parameters, state, cost);
}

/** Records a rejection if necessary. Returns true if there is something to store. */
export function noteRefusal({ limit, state, block, cost }: View): boolean {
  const { algorithm, parameters, quota } = limit;
  if (algorithm.refuse === undefined || block !== undefined || cost > quota) return false;
  return algorithm.refuse(parameters, state, cost);
}

/**
 * Determines if units are available within `longest`, and the wait for them in microseconds. A limit that keeps a share of its quota for
 * others reserves no future units, except for a claim: the debt would keep others from their share until it is paid.
 */
export function evaluateReservation(view: View, longest: number, isClaim: boolean): void {
  const { limit, state, block, cost } = view;
  const { algorithm, parameters } = limit;
  if ((cost > limit.quota && !limit.varies) || block !== undefined) return;
  view.allowed = fits(view);
  // A cost of 0 reserves nothing for later.
  if (cost === 0) return;
  if (view.allowed) {
    view.delay = algorithm.queue?.delay(parameters, state, cost) ?? 0;
    view.allowed = view.delay <= longest;
  } else if (algorithm.reservation !== undefined && (limit.whole === limit || isClaim)) {
    view.delay = algorithm.retryAfter(parameters, state, cost);
    view.allowed = view.delay <= longest && algorithm.reservation.canOwe(parameters, state, cost);
  }
}

/** The decision about a view that will be empty in `reset` microseconds. */
export function decisionOf(view: View, reset: number): StoreDecision {
  const { limit, cost, state, block } = view;
  const { algorithm, parameters, name, quota, escalation } = limit;
  // A request with a cost of 0 gets no place in a queue and holds nothing.
  const takes = view.allowed && cost > 0;
  const blocked = blockedFor(view);
  const decision: StoreDecision = {
    allowed: view.allowed,
    limit: name,
    quota,
    // Withheld units are not available to the rejected check.
    remaining:
      blocked > 0 ? 0 : Math.max(0, algorithm.remaining(parameters, state) - (view.allowed ? 0 : view.withheld)),
    retryAfterMs: view.allowed ? 0 : retryAfterMs(view, blocked),
    resetAfterMs: toMs(blocked > reset ? blocked : reset),
    delayMs: takes && algorithm.queue ? toMs(algorithm.queue.delay(parameters, state, cost)) : 0,
    source: 'memory',
  };
  if (limit.adapts) {
    decision.quota = algorithm.adapting!.quota(parameters, state);
    decision.inFlight = algorithm.adapting!.inFlight(parameters, state);
  }
  if (limit.varies) {
    const varying = algorithm.varying!;
    decision.quota = varying.quota(parameters, state);
    const credits = varying.credits(parameters, state);
    if (credits !== undefined) decision.credits = credits;
  }
  if (limit.countsRefused) decision.tried = quota - algorithm.remaining(parameters, state);
  const tickets = takes ? (algorithm.queue ?? algorithm.leases) : undefined;
  if (escalation !== undefined) decision.offences = (block ?? view.past)?.offences ?? 0;
  if (tickets !== undefined) decision.ticket = tickets.ticket(parameters, state, cost);
  return decision;
}

function retryAfterMs(view: View, blocked: number): number {
  const { cost, delay, withheld } = view;
  if (delay !== undefined) return toMs(delay);
  const wait = waitFor(view, cost + withheld, blocked);
  return wait === Infinity ? wait : toMs(wait);
}

/** Microseconds until a cost fits; `Infinity` for never. */
export function waitFor(view: View, cost: number, blocked = blockedFor(view)): number {
  const { limit, state, estimates } = view;
  const { algorithm, parameters, quota, varies } = limit;
  if (cost > quota && !varies) return Infinity;
  let needed = algorithm.fits(parameters, state, cost) ? 0 : algorithm.retryAfter(parameters, state, cost);
  if (estimates !== undefined && limit.estimates !== undefined && needed > 0) {
    needed = Math.min(needed, limit.estimates.untilFits(view, cost));
  }
  return Math.max(needed, blocked);
}

/** Microseconds until a block ends; 0 without one. */
export function blockedFor({ block, state }: View): number {
  return block === undefined ? 0 : block.until - state.now;
}

/** Longer waits than this (36,000 years) are treated alike, as in the script. */
const LONGEST_MS = 2 ** 50;

/** Whole milliseconds, rounded up. */
export function toMs(micros: number): number {
  return Math.min(Math.ceil(micros / 1000), LONGEST_MS);
}

/** Counts a rejected attempt. The count stays within the range of safe integers. */
export function countRefusal({ limit, state, cost }: View): void {
  const { algorithm, parameters, quota } = limit;
  const room = Number.MAX_SAFE_INTEGER - (quota - algorithm.remaining(parameters, state));
  algorithm.take(parameters, state, Math.min(cost, room));
}
