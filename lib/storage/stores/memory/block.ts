import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { Escalation } from '../../../engine/limits/limit-settings.js';

/** The block of a counter; times are in microseconds. If `duration` is 0, the block is over and only kept for its offences. */
export interface Block {
  /** When it ends or ended. */
  readonly until: number;
  /** Its length when it began. */
  readonly duration: number;
  /** The number of blocks that rejections have begun and that are not forgotten, for limits whose `blockFor` is a list. */
  readonly offences: number;
  /** Set by a call. It is evicted later than blocks that rejections have begun. */
  readonly isByHand?: true | undefined;
}

/** Offences beyond this number are not counted. */
const MOST_OFFENCES = 255;
/** The longest block, 407 days. It leaves the script room for offences. */
const LONGEST = 2 ** 45 - 1;

/** The current state of a stored block; `undefined` if it no longer matters. */
export function blockAt({ escalation }: CompiledLimit, stored: Block, now: number): Block | undefined {
  const { until, duration, isByHand } = stored;
  const offences = escalation === undefined ? 0 : stored.offences;
  if (until > now && duration > 0) {
    // If the clock was set back, the block ends no later than if it had just begun.
    const end = Math.min(until, now + duration);
    return end === until && offences === stored.offences ? stored : { until: end, duration, offences, isByHand };
  }
  if (escalation === undefined || offences === 0 || now >= until + escalation.forgetAfter) return undefined;
  // It stays over even if the clock is set back again. If the clock was set back, it counts as having just ended.
  return until <= now && duration === 0 ? stored : { until: Math.min(until, now), duration: 0, offences };
}

/** When a block no longer matters. */
export function endOf({ escalation }: CompiledLimit, { until, offences }: Block): number {
  return escalation === undefined || offences === 0 ? until : until + escalation.forgetAfter;
}

/** The block that a rejection begins, given the last block. It lasts at least `least`. */
export function nextBlock(limit: CompiledLimit, last: Block | undefined, least: number, now: number): Block {
  const { escalation } = limit;
  if (escalation === undefined) return blockOf(Math.max(limit.blockFor, least), now, 0);
  const offences = Math.min((last?.offences ?? 0) + 1, MOST_OFFENCES);
  return blockOf(Math.max(stepOf(escalation, offences), least), now, offences);
}

function stepOf({ steps }: Escalation, offences: number): number {
  return steps[Math.min(offences, steps.length) - 1]!;
}

/**
 * The block after another attempt during it. It lasts at least as long from now as its last offence requires. The attempt doesn't count as
 * an offence.
 */
export function struckBlock(limit: CompiledLimit, block: Block, now: number): Block {
  const { escalation } = limit;
  const { until, offences, isByHand } = block;
  const duration = escalation === undefined ? limit.blockFor : stepOf(escalation, Math.max(1, offences));
  return now + duration <= until ? block : { ...blockOf(duration, now, offences), isByHand };
}

/** A block that begins now and doesn't count as an offence. A duration of 0 ends the block and clears offences. */
export function blockFor(duration: number, now: number, last: Block | undefined): Block | undefined {
  return duration > 0 ? blockOf(duration, now, last?.offences ?? 0) : undefined;
}

/** Like `blockFor`, but set by a call. */
export function blockByHand(duration: number, now: number, last: Block | undefined): Block | undefined {
  const block = blockFor(duration, now, last);
  return block && { ...block, isByHand: true };
}

function blockOf(micros: number, now: number, offences: number): Block {
  const duration = offences > 0 ? Math.min(micros, LONGEST) : micros;
  return { until: now + duration, duration, offences, isByHand: undefined };
}
