import type { CompiledLimit } from '../limits/compiled-limit.js';

/**
 * How far ahead the line of a process takes places that cannot be used yet, in milliseconds. What is taken stays taken when the process is
 * killed; what is not taken in time goes to others.
 */
const AHEAD_MS = 1000;

/**
 * How many units the line of a process may have taken ahead of their time, one at least. Nothing of limits whose units can be used as soon
 * as they are taken.
 */
export function unitsAhead(limit: CompiledLimit): number | undefined {
  const { spacing } = paceOf(limit) ?? {};
  return spacing === undefined ? undefined : Math.max(1, Math.floor((AHEAD_MS * 1000) / spacing));
}

/** How much later so many units can be used at the earliest than those before them, in milliseconds. */
export function leastGapMs(limit: CompiledLimit, units: number): number {
  const { spacing, step } = paceOf(limit) ?? { spacing: 0, step: 1 };
  return (Math.floor((units * spacing) / step) * step) / 1000;
}

/** The microseconds between units that are taken ahead of their time. Of a part of a limit none are: what it owed would keep others out. */
function paceOf(limit: CompiledLimit): { readonly spacing: number; readonly step: number } | undefined {
  const { algorithm, parameters } = limit;
  const { queue, reservation } = algorithm;
  if (queue !== undefined) return { spacing: queue.spacing(parameters), step: 1 };
  if (reservation === undefined || limit.whole !== limit) return undefined;
  return { spacing: reservation.spacing(parameters), step: reservation.step(parameters) };
}
