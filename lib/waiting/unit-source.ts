import type { Refund } from '../stores/store.js';
import type { Turn } from './turn.js';
import type { WaitingCall } from './waiting-call.js';

/** What became of units that calls had taken under limits that have changed since. */
export type Conversion = 'same' | 'converted' | 'forgotten' | 'open';

/** How the calls of a queue get their units. */
export interface UnitSource {
  /** How many calls have units that they may not use yet. */
  readonly size: number;
  /** Whether nobody has any. */
  readonly isEmpty: boolean;
  /** How many units may be taken ahead of their time now; nothing where none ever are. */
  readonly room: number | undefined;
  /** How far away the last units are that were taken, in milliseconds. */
  readonly aheadMs: number;
  /** Whether a call that was refused is never overtaken by one that asks for less and has less time. */
  readonly keepsOrder: boolean;
  /** Asks for the units of calls, in their order. */
  ask(calls: readonly WaitingCall[]): Promise<Turn>[];
  /** Gives a call what it was let have, at once or when it may be used. Returns how many units of each limit the next calls are likely to get. */
  take(call: WaitingCall, turn: Turn): readonly number[];
  /** Takes back all units that may not be used yet. Returns their calls, and what gives them back. */
  takeBack(): { readonly calls: readonly WaitingCall[]; readonly refunds: readonly Refund[] };
  /** Converts units to the limits in force now. */
  convert(): Conversion;
  /** Rejects the calls that have units, and gives these back. */
  close(reason: Error): void;
}

/** What a source reports to the queue of its calls. */
export interface SourceListener {
  /** Calls that had units have left. */
  onReleased(): void;
  /** A call got units by a limit that is no longer in force. */
  onLimitChanged(): void;
}

/** Gives units back in the background, and wakes those who wait for them. */
export type GiveBack = (refunds: readonly Refund[]) => void;
