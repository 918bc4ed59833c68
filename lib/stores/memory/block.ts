import type { CompiledLimit } from '../../limits/compiled-limit.js';

/** How long a counter is refused, in microseconds; or, where the duration is 0, a block that is over and kept for its offences. */
export interface Block {
  /** When it ends, or ended. */
  readonly until: number;
  /** How long that was when it began. */
  readonly duration: number;
  /** How many blocks began by refusals of a limit whose blocks have steps, and are not forgotten. */
  readonly offences: number;
  /** Somebody set it by a call: it is remembered when there is no room for those that refusals began. */
  readonly isByHand?: true | undefined;
}

/** More offences are not told apart. */
const MOST_OFFENCES = 255;
/** The longest block, 407 days, beside which the script has room for offences. */
const LONGEST = 2 ** 45 - 1;

/** A stored block as of now; nothing if nothing of it counts any more. */
export function blockAt({ escalation }: CompiledLimit, stored: Block, now: number): Block | undefined {
  const { until, duration, isByHand } = stored;
  const offences = escalation === undefined ? 0 : stored.offences;
  if (until > now && duration > 0) {
    // If the clock was set back, the block ends no later than if it had just begun.
    const end = Math.min(until, now + duration);
    return end === until && offences === stored.offences ? stored : { until: end, duration, offences, isByHand };
  }
  if (escalation === undefined || offences === 0 || now >= until + escalation.forgetAfter) return undefined;
  // It is over, also if the clock steps back again; and if it did, no more than if it had just ended.
  return until <= now && duration === 0 ? stored : { until: Math.min(until, now), duration: 0, offences };
}

/** When nothing of a block counts any more. */
export function endOf({ escalation }: CompiledLimit, { until, offences }: Block): number {
  return escalation === undefined || offences === 0 ? until : until + escalation.forgetAfter;
}

/** The block of a check that is refused, behind what is known of the last one; it lasts at least so long. */
export function nextBlock(limit: CompiledLimit, last: Block | undefined, least: number, now: number): Block {
  const { escalation } = limit;
  if (escalation === undefined) return blockOf(Math.max(limit.blockFor, least), now, 0);
  const offences = Math.min((last?.offences ?? 0) + 1, MOST_OFFENCES);
  const { steps } = escalation;
  return blockOf(Math.max(steps[Math.min(offences, steps.length) - 1]!, least), now, offences);
}

/** A block from now on, which is no offence; none of no time, which forgets offences. */
export function blockFor(duration: number, now: number, last: Block | undefined): Block | undefined {
  return duration > 0 ? blockOf(duration, now, last?.offences ?? 0) : undefined;
}

/** The same, as somebody sets it by a call. */
export function blockByHand(duration: number, now: number, last: Block | undefined): Block | undefined {
  const block = blockFor(duration, now, last);
  return block && { ...block, isByHand: true };
}

function blockOf(micros: number, now: number, offences: number): Block {
  const duration = offences > 0 ? Math.min(micros, LONGEST) : micros;
  return { until: now + duration, duration, offences, isByHand: undefined };
}
