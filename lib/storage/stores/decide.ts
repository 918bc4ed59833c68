import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { type CheckEntry, withCandidates } from '../../engine/limits/counter.js';
import { messages } from '../../engine/errors/messages/general.js';
import { type Operation, type OperationAnswer, type OperationName, rowOf } from './operation.js';
import type { Check, CheckAnswer, ReserveEntry, Store, StoreDecision } from './store.js';
import { openDecision } from './store-decision.js';

/** A store that decides a check in few steps: without a promise, and synchronously if possible. */
export abstract class DirectStore {
  /** @internal Decides one check and reports to its answer, before returning or later. Never throws. */
  abstract decide(check: Check, answer: CheckAnswer): void;

  /**
   * @internal Runs an operation. Layers implement this; stores without it are called by their methods.
   */
  operate?<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>>;

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
    // Layers add the candidate on their own.
    const entries = this.operate === undefined ? withCandidates([reservation]) : [reservation];
    const check: Check = { entries, reserving: true };
    const [decision, candidate] = await promised((answer) => this.decide(check, answer));
    if (candidate !== undefined) decision!.candidate = candidate;
    return decision!;
  }
}

/** Decides the checks that a layer passes on. */
export type Decider = Pick<DirectStore, 'decide'>;

/**
 * Determines once how a layer is called, so that the engine can optimize the calls between layers. A store at the bottom is inspected on
 * each call, because apps can access it and tests spy on its methods.
 */
export function deciderOf(store: Store): Decider {
  const isLayer = store instanceof DirectStore && store.operate !== undefined;
  return isLayer && isDirect(store) ? store : { decide: (check, answer) => decide(store, check, answer) };
}

/** Passes one check to a store in the fewest steps that the store supports. */
export function decide(store: Store, check: Check, answer: CheckAnswer): void {
  // A subclass in the app may override `check`.
  if (store.check !== DirectStore.prototype.check) answerWith(askByMethods(store, check), answer);
  else if (check.reserving === true && reservesOtherwise(store)) answerWith(reserve(store, check), answer);
  else (store as Store & DirectStore).decide(check, answer);
}

/** Returns true if a store answers checks of a limit synchronously. */
export function decidesAtOnce(store: Store, limit: CompiledLimit): boolean {
  return store instanceof DirectStore && store.check === DirectStore.prototype.check && store.decidesAtOnce(limit);
}

/** Like `decide`, for callers that wait for a promise. */
export function decided(store: Store, check: Check): Promise<StoreDecision[]> {
  return promised((answer) => decide(store, check, answer));
}

/** Reserves units like `reserve` of the store, in fewer steps if the store supports that. */
export function decideReservation(store: Store, entry: ReserveEntry, answer: CheckAnswer): void {
  if (isDirect(store) && entry.limit.candidate === undefined) {
    store.decide({ entries: [entry], reserving: true }, answer);
  } else answerWith(reserveByMethod(store, entry), answer);
}

/** An app's store may throw synchronously, or return no decision. */
async function reserveByMethod(store: Store, entry: ReserveEntry): Promise<StoreDecision[]> {
  const answer: unknown = await store.reserve(entry);
  if (typeof answer === 'object' && answer !== null && 'allowed' in answer) return [answer as StoreDecision];
  throw new TypeError(messages.noDecision(answer));
}

/** Runs an operation on a store. */
export function operate<N extends OperationName>(store: Store, operation: Operation<N>): Promise<OperationAnswer<N>> {
  if (store instanceof DirectStore && store.operate !== undefined) return store.operate(operation);
  return rowOf<N>(operation).ask(store, operation);
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

/** An app's store may throw synchronously, or return no decisions. */
async function askByMethods(store: Store, check: Check): Promise<StoreDecision[]> {
  if (check.reserving === true) return reserve(store, check);
  const answers: unknown = await store.check([check]);
  const decisions: unknown = Array.isArray(answers) ? answers[0] : undefined;
  if (Array.isArray(decisions) && decisions.length === check.entries.length) return decisions as StoreDecision[];
  throw new TypeError(messages.noDecisions(decisions, check.entries.length));
}

/** Returns true if neither the store nor a subclass in the app overrides how checks and reservations are decided. */
function isDirect(store: Store): store is Store & DirectStore {
  return store.check === DirectStore.prototype.check && !reservesOtherwise(store);
}

/** Returns true if the store, or a subclass in the app, overrides `reserve`. */
function reservesOtherwise(store: Store): boolean {
  return store.reserve !== DirectStore.prototype.reserve;
}

/** `reserve` of a store includes the limit's candidate in its decision, except for units that were claimed before. */
async function reserve(store: Store, { entries }: Check): Promise<StoreDecision[]> {
  const decision = await store.reserve(entries[0] as ReserveEntry);
  return entries.length === 1 || decision.candidate === undefined ? [decision] : [decision, decision.candidate];
}

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
