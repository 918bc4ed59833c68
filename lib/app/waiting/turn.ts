import { isRefusal } from '../../engine/limits/check-result.js';
import type { CheckEntry, Counter } from '../../engine/limits/counter.js';
import type { StoreDecision } from '../../storage/stores/store.js';

/** The answers of limits to a waiting call: it goes on if none of them refuses. */
export interface Turn {
  /** What each limit was asked. */
  readonly entries: readonly CheckEntry[];
  /** The answer of each. */
  readonly decisions: readonly StoreDecision[];
  /** Whether units were refused only because they may not be taken that far ahead of their time yet. */
  readonly isEarly?: boolean;
}

/** One limit's refusal of a call. */
export interface Refusal extends Counter {
  /** The index of the limit that refused. */
  readonly index: number;
  readonly decision: StoreDecision;
}

/** Whether a call goes on. */
export function goesOn({ entries, decisions }: Turn): boolean {
  for (let i = 0; i < decisions.length; i++) if (isRefusal(entries[i]!.limit, decisions[i]!)) return false;
  return true;
}

/** The limits that refused a call; empty if it goes on. */
export function refusalsOf({ entries, decisions }: Turn): Refusal[] {
  return decisions.flatMap((decision, index) => {
    const { limit, identity } = entries[index]!;
    return isRefusal(limit, decision) ? [{ limit, identity, index, decision }] : [];
  });
}
