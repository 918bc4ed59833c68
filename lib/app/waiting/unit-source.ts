import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { Refund } from '../../storage/stores/store.js';
import type { Turn, TurnAnswer } from './turn.js';
import type { WaitingCall } from './waiting-call.js';

/** The effect of changed limits on units that calls had taken under the former ones. */
export type Conversion = 'same' | 'converted' | 'forgotten' | 'open';

/** Gets the units for the calls of a queue. */
export interface UnitSource {
  /** The number of calls whose units can't be used yet. */
  readonly size: number;
  /** True if no calls have units. */
  readonly isEmpty: boolean;
  /** The number of units that may be taken in advance now; `undefined` if that is never allowed. */
  readonly room: number | undefined;
  /** The time until the last units that were taken can be used, in milliseconds. */
  readonly aheadMs: number;
  /** True if a rejected call is never overtaken by one that needs fewer units and has less time. */
  readonly keepsOrder: boolean;
  /** Requests the units of calls, in their order. */
  ask(calls: readonly WaitingCall[]): TurnAnswer[];
  /**
   * Assigns a call its units, immediately or when they can be used. Returns the number of units per limit that the next calls are likely to
   * get.
   */
  take(call: WaitingCall, turn: Turn): readonly number[];
  /** Records a rejection. */
  refused(turn: Turn): void;
  /** Takes back all units that can't be used yet. Returns their calls and the refunds. */
  takeBack(): { readonly calls: readonly WaitingCall[]; readonly refunds: readonly Refund[] };
  /** Converts units to the current limits. */
  convert(): Conversion;
  /** Rejects the calls that have units, and refunds the units. */
  close(reason: Error): void;
}

/** Receives the events of a source. */
export interface SourceListener {
  /** Called when calls that had units have left. */
  onReleased(): void;
  /** Called when a call got units under a limit that has been replaced. */
  onLimitChanged(): void;
}

/** Refunds units in the background, and wakes the calls that wait for them. */
export type GiveBack = (refunds: readonly Refund[]) => void;

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
