import type { CheckEntry } from '../../engine/limits/counter.js';
import { decide, promised } from './decide.js';
import { openDecision } from './store-decision.js';
import type { Check, CheckAnswer, Store, StoreDecision } from './store.js';

/** Decides a check from code. Limits that are switched off are skipped. */
export function decideEnforced(store: Store, check: Check, answer: CheckAnswer): void {
  if (!check.entries.some(isOff)) {
    decide(store, check, answer);
    return;
  }
  const known = check.entries.map(({ limit }) => (limit.off ? openDecision(limit) : undefined));
  const entries = check.entries.filter((entry) => !isOff(entry));
  const whole = new PartlyKnownAnswer(known, answer);
  if (entries.length === 0) whole.decided([]);
  else decide(store, { ...check, entries }, whole);
}

/** Like `decideEnforced`, for callers that wait for a promise. */
export function decidedEnforced(store: Store, check: Check): Promise<StoreDecision[]> {
  return promised((answer) => decideEnforced(store, check, answer));
}

function isOff({ limit }: CheckEntry): boolean {
  return limit.off;
}

/** Completes the answer to a check some of whose entries were decided without the store. */
export class PartlyKnownAnswer implements CheckAnswer {
  constructor(
    private readonly known: readonly (StoreDecision | undefined)[],
    private readonly answer: CheckAnswer,
  ) {}

  decided(decisions: readonly StoreDecision[]): void {
    let next = 0;
    this.answer.decided(this.known.map((decision) => decision ?? decisions[next++]!));
  }

  failed(error: unknown): void {
    this.answer.failed(error);
  }
}
