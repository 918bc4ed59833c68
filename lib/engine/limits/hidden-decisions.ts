import type { Decision } from './decision.js';

/** The decisions of limits that are not shown to clients. Decisions belong to users, who return and compare them. */
const hidden = new WeakSet<Decision>();

/** Notes that a decision is of a limit that is not shown to clients; returns it. */
export function hide<D extends Decision>(decision: D): D {
  hidden.add(decision);
  return decision;
}

/** Whether a decision is of a limit that is not shown to clients. */
export function isHidden(decision: Decision): boolean {
  return hidden.has(decision);
}
