import type { Refund } from '../../storage/stores/store.js';
import type { Turn } from './turn.js';
import type { TurnAnswer } from './turn-answer.js';
import type { WaitingCall } from './waiting-call.js';

/** What happened to units that calls had taken under limits that have changed since. */
export type Conversion = 'same' | 'converted' | 'forgotten' | 'open';

/** How the calls of a queue get their units. */
export interface UnitSource {
  /** The number of calls whose units may not be used yet. */
  readonly size: number;
  /** Whether no calls have units. */
  readonly isEmpty: boolean;
  /** How many units may be taken ahead of their time now; `undefined` if none ever are. */
  readonly room: number | undefined;
  /** How far in the future the last units are that were taken, in milliseconds. */
  readonly aheadMs: number;
  /** Whether a refused call is never overtaken by one that asks for less and has less time. */
  readonly keepsOrder: boolean;
  /** Asks for the units of calls, in their order. */
  ask(calls: readonly WaitingCall[]): TurnAnswer[];
  /**
   * Gives a call its units, at once or when they may be used. Returns how many units of each limit the next calls are likely to
   * get.
   */
  take(call: WaitingCall, turn: Turn): readonly number[];
  /** Notes an answer that refused a call. */
  refused(turn: Turn): void;
  /** Gives back units that a call has got and does not take. */
  refund(turn: Turn): void;
  /** Takes back all units that may not be used yet. Returns their calls, and the refunds. */
  takeBack(): { readonly calls: readonly WaitingCall[]; readonly refunds: readonly Refund[] };
  /** Converts units to the limits in force now. */
  convert(): Conversion;
  /** Rejects the calls that have units, and gives these back. */
  close(reason: Error): void;
}

/** Gets the reports of a source. */
export interface SourceListener {
  /** Called when calls that had units have left. */
  onReleased(): void;
  /** Called when a call got units under a limit that is no longer in force. */
  onLimitChanged(): void;
}

/** Gives units back in the background, and wakes the calls that wait for them. */
export type GiveBack = (refunds: readonly Refund[]) => void;
