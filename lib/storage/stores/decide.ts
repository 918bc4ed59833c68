import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { withCandidates } from '../../engine/limits/counter.js';
import { messages } from '../../engine/errors/messages/general.js';
import { type Operation, type OperationAnswer, type OperationName, rowOf } from './operation.js';
import type { Check, CheckAnswer, ReserveEntry, Store, StoreDecision } from './store.js';

/** A store that answers each check in few steps: without a promise, and at once where it can. */
export abstract class DirectStore {
  /** @internal Decides one check, and reports to its answer, before it returns or later. Never throws. */
  abstract decide(check: Check, answer: CheckAnswer): void;

  /**
   * @internal Does an operation. Layers have it; they ask a store without it by its methods.
   */
  operate?<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>>;

  /** @internal Decides a check of one limit at once; nothing, and nothing is changed, if that takes more than few steps. */
  decideOne(_limit: CompiledLimit, _identity: string, _cost: number): StoreDecision | undefined {
    return undefined;
  }

  /** @internal Whether it answers checks of a limit before `decide` returns, since it counts in this process. */
  decidesAtOnce(_limit: CompiledLimit): boolean {
    return false;
  }

  /** Decides each check atomically: allowed by all of its limits, or charged to none. Rejects with `RateLimitStoreError`. */
  check(checks: readonly Check[]): Promise<StoreDecision[][]> {
    return Promise.all(checks.map((check) => promised((answer) => this.decide(check, answer))));
  }

  /** Takes units of a limit and of its candidate, if need be from the future. Rejects with `RateLimitStoreError`. */
  async reserve(reservation: ReserveEntry): Promise<StoreDecision> {
    // Layers add the candidate themselves.
    const entries = this.operate === undefined ? withCandidates([reservation]) : [reservation];
    const check: Check = { entries, reserving: true };
    const [decision, candidate] = await promised((answer) => this.decide(check, answer));
    if (candidate !== undefined) decision!.candidate = candidate;
    return decision!;
  }
}

/** Decides what a layer hands on. */
export type Decider = Pick<DirectStore, 'decide'>;

/**
 * Looks once how a layer is asked: the engine then knows what is below each layer, and each check is faster. A store at the bottom is
 * looked at each time: an app can hold it, and its tests watch what it is asked.
 */
export function deciderOf(store: Store): Decider {
  const isLayer = store instanceof DirectStore && store.operate !== undefined;
  return isLayer && isDirect(store) ? store : { decide: (check, answer) => decide(store, check, answer) };
}

/** Asks a store for one check, in the fewest steps that it knows. */
export function decide(store: Store, check: Check, answer: CheckAnswer): void {
  // A class of the app's may override `check`.
  if (store.check !== DirectStore.prototype.check) answerWith(askByMethods(store, check), answer);
  else if (check.reserving === true && reservesOtherwise(store)) answerWith(reserve(store, check), answer);
  else (store as Store & DirectStore).decide(check, answer);
}

/** Whether a store answers checks of a limit at once. */
export function decidesAtOnce(store: Store, limit: CompiledLimit): boolean {
  return store instanceof DirectStore && store.check === DirectStore.prototype.check && store.decidesAtOnce(limit);
}

/** The same, for callers that wait for the answer. */
export function decided(store: Store, check: Check): Promise<StoreDecision[]> {
  return promised((answer) => decide(store, check, answer));
}

/** Asks for a reservation as `reserve` of the store does, in fewer steps if it knows them. */
export function decideReservation(store: Store, entry: ReserveEntry, answer: CheckAnswer): void {
  if (isDirect(store) && entry.limit.candidate === undefined) {
    store.decide({ entries: [entry], reserving: true }, answer);
  } else answerWith(reserveByMethod(store, entry), answer);
}

/** A store of the app may throw at once, or give no decision. */
async function reserveByMethod(store: Store, entry: ReserveEntry): Promise<StoreDecision[]> {
  const answer: unknown = await store.reserve(entry);
  if (typeof answer === 'object' && answer !== null && 'allowed' in answer) return [answer as StoreDecision];
  throw new TypeError(messages.noDecision(answer));
}

/** Has a store do an operation. */
export function operate<N extends OperationName>(store: Store, operation: Operation<N>): Promise<OperationAnswer<N>> {
  if (store instanceof DirectStore && store.operate !== undefined) return store.operate(operation);
  return rowOf<N>(operation).ask(store, operation);
}

/** Reports decisions to an answer. If telemetry fails meanwhile, only the check fails. */
export function report(answer: CheckAnswer, decisions: StoreDecision[]): void {
  try {
    answer.decided(decisions);
  } catch (error) {
    answer.failed(error);
  }
}

/** Reports promised decisions to an answer. */
export function answerWith(decisions: Promise<StoreDecision[]>, answer: CheckAnswer): void {
  decisions.then(
    (made) => report(answer, made),
    (error: unknown) => answer.failed(error),
  );
}

/** Makes a promise of an answer. */
export function promised(ask: (answer: CheckAnswer) => void): Promise<StoreDecision[]> {
  return new Promise((resolve, reject) => ask({ decided: resolve, failed: reject }));
}

/** A store of the app may throw at once, or give no decisions. */
async function askByMethods(store: Store, check: Check): Promise<StoreDecision[]> {
  if (check.reserving === true) return reserve(store, check);
  const answers: unknown = await store.check([check]);
  const decisions: unknown = Array.isArray(answers) ? answers[0] : undefined;
  if (Array.isArray(decisions) && decisions.length === check.entries.length) return decisions as StoreDecision[];
  throw new TypeError(messages.noDecisions(decisions, check.entries.length));
}

/** Whether neither the app nor a class of it overrides how checks and reservations are decided. */
function isDirect(store: Store): store is Store & DirectStore {
  return store.check === DirectStore.prototype.check && !reservesOtherwise(store);
}

/** Whether the app or a class of it overrides `reserve`. */
function reservesOtherwise(store: Store): boolean {
  return store.reserve !== DirectStore.prototype.reserve;
}

/** The `reserve` of a store takes the limit's candidate along. One whose units were claimed before says nothing of it. */
async function reserve(store: Store, { entries }: Check): Promise<StoreDecision[]> {
  const decision = await store.reserve(entries[0] as ReserveEntry);
  return entries.length === 1 || decision.candidate === undefined ? [decision] : [decision, decision.candidate];
}
