import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';

/**
 * The time by which the queue of a process takes places in advance, in milliseconds. Places that were taken stay taken if the process is
 * killed; places that were not taken early enough go to other processes.
 */
const AHEAD_MS = 1000;

/**
 * The maximum number of units, at least one, that the queue of a process may take in advance; `undefined` for limits whose units can be
 * used as soon as they are taken.
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

/** The microseconds between units taken in advance; `undefined` for a part of a limit, because its debt would keep others from using it. */
function paceOf(limit: CompiledLimit): { readonly spacing: number; readonly step: number } | undefined {
  const { algorithm, parameters } = limit;
  const { queue, reservation } = algorithm;
  if (queue !== undefined) return { spacing: queue.spacing(parameters), step: 1 };
  if (reservation === undefined || limit.whole !== limit) return undefined;
  return { spacing: reservation.spacing(parameters), step: reservation.step(parameters) };
}
