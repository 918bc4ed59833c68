import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';

/**
 * How far ahead the queue of a process takes places that cannot be used yet, in milliseconds. Places that were taken stay taken
 * if the process is killed; places that were not taken in time go to others.
 */
const AHEAD_MS = 1000;

/**
 * How many units the queue of a process may have taken ahead of their time, at least one; `undefined` for limits whose units can
 * be used as soon as they are taken.
 */
export function unitsAhead(limit: CompiledLimit): number | undefined {
  const { spacing } = paceOf(limit) ?? {};
  return spacing === undefined ? undefined : Math.max(1, Math.floor((AHEAD_MS * 1000) / spacing));
}

/** The minimum time in milliseconds between these units and those before them. */
export function leastGapMs(limit: CompiledLimit, units: number): number {
  const { spacing, step } = paceOf(limit) ?? { spacing: 0, step: 1 };
  return (Math.floor((units * spacing) / step) * step) / 1000;
}

/** The microseconds between units taken ahead of their time; none for a part of a limit: its debt would keep others out. */
function paceOf(limit: CompiledLimit): { readonly spacing: number; readonly step: number } | undefined {
  const { algorithm, parameters } = limit;
  const { queue, reservation } = algorithm;
  if (queue !== undefined) return { spacing: queue.spacing(parameters), step: 1 };
  if (reservation === undefined || limit.whole !== limit) return undefined;
  return { spacing: reservation.spacing(parameters), step: reservation.step(parameters) };
}
