import type { Decision } from './decision.js';

/**
 * The decisions of limits that are hidden from clients. They are marked here, since decisions belong to users, who return and compare them.
 */
const hidden = new WeakSet<Decision>();

/** Marks a decision as hidden from clients, and returns it. */
export function hide<D extends Decision>(decision: D): D {
  hidden.add(decision);
  return decision;
}

/** Returns true if a decision is hidden from clients. */
export function isHidden(decision: Decision): boolean {
  return hidden.has(decision);
}
