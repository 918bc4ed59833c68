import { isRefusal } from '../../engine/limits/decision.js';
import type { CheckEntry, Counter } from '../../engine/limits/counter.js';
import type { StoreDecision } from '../../storage/stores/store.js';

/** The decisions of limits on a waiting call. It continues if none of them rejects it. */
export interface Turn {
  /** The request to each limit. */
  readonly entries: readonly CheckEntry[];
  /** The decision of each limit. */
  readonly decisions: readonly StoreDecision[];
  /** True if units were only rejected because they may not be taken that far in advance yet. */
  readonly isEarly?: boolean;
}

/** One limit's rejection of a call. */
export interface Refusal extends Counter {
  /** The index of the limit that rejected. */
  readonly index: number;
  readonly decision: StoreDecision;
}

/** Returns true if the call continues. */
export function goesOn({ entries, decisions }: Turn): boolean {
  for (let i = 0; i < decisions.length; i++) if (isRefusal(entries[i]!.limit, decisions[i]!)) return false;
  return true;
}

/** The rejections of a call; empty if it continues. */
export function refusalsOf({ entries, decisions }: Turn): Refusal[] {
  return decisions.flatMap((decision, index) => {
    const { limit, identity } = entries[index]!;
    return isRefusal(limit, decision) ? [{ limit, identity, index, decision }] : [];
  });
}
