import { isRefusal } from '../../../engine/limits/decision.js';
import { type CheckEntry, type Counter, withCandidates } from '../../../engine/limits/counter.js';
import { candidateUse, type CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { OuterLayer } from '../../stores/layers/store-layer.js';
import type { Operation, OperationAnswer, OperationCounter, OperationName } from '../../stores/operation.js';
import { chargeOf, isEstimate } from '../../stores/store-decision.js';
import type { Charge, Check, CheckAnswer, Refund, StoreDecision } from '../../stores/store.js';
import type { Feature } from '../feature.js';

/** The operations that are also done to the counter of a candidate: always, or if the candidate was charged. */
const DONE_TOO: { readonly [N in OperationName]?: 'always' | 'charged' } = {
  refund: 'charged',
  penalize: 'charged',
  renew: 'charged',
  block: 'always',
  reset: 'always',
  learn: 'always',
};

/**
 * Adds the candidates of limits to checks. Each candidate is an entry of the same check, after the entries of the caller, and is left out
 * of the answer. Operations on a limit's counter are also done to the candidate's.
 */
export class CandidateStore extends OuterLayer {
  override decideOne(limit: CompiledLimit, identity: string, cost: number): StoreDecision | undefined {
    return limit.candidate === undefined ? this.inner.decideOne(limit, identity, cost) : undefined;
  }

  override decide(check: Check, answer: CheckAnswer): void {
    const { entries, peek } = check;
    if (peek !== true) {
      for (let i = 0; i < entries.length; i++) {
        if (entries[i]!.limit.candidate === undefined) continue;
        const both = { ...check, entries: withCandidates(entries) };
        this.inner.decide(both, new AnswerWithCandidates(this, both, entries.length, answer));
        return;
      }
    }
    this.inner.decide(check, answer);
  }

  override async operate<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>> {
    const counters: readonly OperationCounter[] = operation.counters;
    const which = DONE_TOO[operation.name];
    if (which === undefined || !counters.some(({ limit }) => limit.candidate !== undefined))
      return super.operate(operation);
    const own = counters.flatMap(
      (counter) => (which === 'always' ? sameOfCandidate(counter) : ofCandidate(counter)) ?? [],
    );
    if (operation.name !== 'refund') return super.operate({ ...operation, counters: [...counters, ...own] });
    const refunds = own as Refund[];
    const both = { ...operation, counters: [...counters, ...refunds.flatMap(unusedOf)] };
    const [answer] = await Promise.all([
      super.operate(both),
      ...refunds.flatMap(owedOf).map((charge) => this.inner.penalize(charge)),
    ]);
    return answer;
  }

  /**
   * Refunds a candidate if its limit would have rejected in shadow mode, since nobody else does. If that fails, the units come back on
   * their own in time.
   */
  giveBack(charge: Charge): void {
    const refund = ofCandidate(charge);
    if (refund !== undefined) this.inner.refund([refund]).catch(() => undefined);
  }
}

/** Passes on the decisions about the caller's limits. */
class AnswerWithCandidates implements CheckAnswer {
  constructor(
    private readonly store: CandidateStore,
    private readonly check: Check,
    /** The number of entries that belong to the caller. */
    private readonly length: number,
    private readonly answer: CheckAnswer,
  ) {}

  decided(all: StoreDecision[]): void {
    const { check, length } = this;
    const { entries } = check;
    const decisions = all.slice(0, length);
    let candidate = length;
    for (let i = 0; i < length; i++) {
      if (entries[i]!.limit.candidate === undefined) continue;
      const decision = decisions[i]!;
      decision.candidate = all[candidate]!;
      if (!decision.allowed) this.release(entries[i]!, decision, decisions);
      candidate++;
    }
    this.answer.decided(decisions);
  }

  failed(error: unknown): void {
    this.answer.failed(error);
  }

  /** If a limit in shadow mode would have rejected, no caller refunds anything. */
  private release(entry: CheckEntry, decision: StoreDecision, decisions: readonly StoreDecision[]): void {
    const { limit } = entry;
    const { entries, refundable = false } = this.check;
    if (!limit.shadow || !(refundable || limit.algorithm.leases !== undefined)) return;
    if (decisions.some((each, index) => isRefusal(entries[index]!.limit, each))) return;
    this.store.giveBack(chargeOf(entry, decision));
  }
}

function sameOfCandidate<C extends Counter>(counter: C): C | undefined {
  return counter.limit.candidate && { ...counter, limit: counter.limit.candidate };
}

/** The same charge for the limit's candidate, if that was charged. Without a decision, it is assumed to be charged like its limit. */
function ofCandidate<C extends OperationCounter>(charge: C): C | undefined {
  const { limit, candidate: decision, source } = charge;
  if (limit.candidate === undefined) return undefined;
  if (decision === undefined) return source === undefined ? { ...charge, limit: limit.candidate } : undefined;
  if (!decision.allowed) return undefined;
  const { ticket, chargedAt } = decision;
  return { ...charge, limit: limit.candidate, ticket, chargedAt, candidate: undefined };
}

/** The refund of a candidate: only the unused units if they are settled without an estimate. */
function unusedOf(refund: Refund): Refund[] {
  const { units, actual } = refund;
  if (actual === undefined || isEstimate(refund)) return [refund];
  return actual < units ? [{ ...refund, units: units - actual }] : [];
}

/** The additional charge of a candidate: the units used beyond those charged, if they are settled without an estimate. */
function owedOf(refund: Refund): Charge[] {
  const { units, actual = 0 } = refund;
  return actual > units && !isEstimate(refund) ? [{ ...refund, units: actual - units }] : [];
}

/** Counts candidates: second versions of limits. Their options are in `options.ts`. */
export const candidates: Feature = {
  use: candidateUse,
  outerLayer: (inner) => new CandidateStore(inner),
};
