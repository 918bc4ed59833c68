import type { Refund } from '../../storage/stores/store.js';
import type { Turn } from './turn.js';
import type { TurnAnswer } from './turn-answer.js';
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
  /** Refunds units that were granted to a call that no longer needs them. */
  refund(turn: Turn): void;
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
