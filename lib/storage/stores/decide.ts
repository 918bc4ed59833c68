import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { type CheckEntry, withCandidates } from '../../engine/limits/counter.js';
import type { Check, CheckAnswer, ReserveEntry, StoreDecision } from './store.js';
import { openDecision } from './store-decision.js';

/** A store that decides a check in few steps: without a promise, and synchronously if possible. */
export abstract class DirectStore {
  /** @internal Decides one check and reports to its answer, before returning or later. Never throws. */
  abstract decide(check: Check, answer: CheckAnswer): void;

  /**
   * @internal Decides a check of one limit synchronously. Returns nothing, without changing anything, if that takes more than a few steps.
   */
  decideOne(_limit: CompiledLimit, _identity: string, _cost: number): StoreDecision | undefined {
    return undefined;
  }

  /** @internal True if checks of a limit are answered before `decide` returns, because the limit counts in this process. */
  decidesAtOnce(_limit: CompiledLimit): boolean {
    return false;
  }

  /** Decides each check atomically: allowed by all of its limits, or charged to none. Rejects with `RateLimitStoreError`. */
  check(checks: readonly Check[]): Promise<StoreDecision[][]> {
    return Promise.all(checks.map((check) => promised((answer) => this.decide(check, answer))));
  }

  /** Takes units of a limit and of its candidate, from the future if necessary. Rejects with `RateLimitStoreError`. */
  async reserve(reservation: ReserveEntry): Promise<StoreDecision> {
    const check: Check = { entries: withCandidates([reservation]), reserving: true };
    const [decision, candidate] = await promised((answer) => this.decide(check, answer));
    if (candidate !== undefined) decision!.candidate = candidate;
    return decision!;
  }
}

/** Reports decisions to an answer. If telemetry fails in the process, only this check fails. */
export function report(answer: CheckAnswer, decisions: StoreDecision[]): void {
  try {
    answer.decided(decisions);
  } catch (error) {
    answer.failed(error);
  }
}

/** Reports the decisions of a promise to an answer. */
export function answerWith(decisions: Promise<StoreDecision[]>, answer: CheckAnswer): void {
  decisions.then(
    (made) => report(answer, made),
    (error: unknown) => answer.failed(error),
  );
}

/** Turns an answer into a promise. */
export function promised(ask: (answer: CheckAnswer) => void): Promise<StoreDecision[]> {
  return new Promise((resolve, reject) => ask({ decided: resolve, failed: reject }));
}

/** A store or layer, as far as it decides checks. */
type Decider = Pick<DirectStore, 'decide'>;

/** Decides a check from code. Limits that are switched off are skipped. */
export function decideEnforced(store: Decider, check: Check, answer: CheckAnswer): void {
  if (!check.entries.some(isOff)) {
    store.decide(check, answer);
    return;
  }
  const known = check.entries.map(({ limit }) => (limit.off ? openDecision(limit) : undefined));
  const entries = check.entries.filter((entry) => !isOff(entry));
  const whole = new PartlyKnownAnswer(known, answer);
  if (entries.length === 0) whole.decided([]);
  else store.decide({ ...check, entries }, whole);
}

/** Like `decideEnforced`, for callers that wait for a promise. */
export function decidedEnforced(store: Decider, check: Check): Promise<StoreDecision[]> {
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
