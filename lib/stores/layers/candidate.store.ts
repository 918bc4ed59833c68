import { isRefusal } from '../../limits/check-result.js';
import type { CheckEntry, Counter } from '../../limits/counter.js';
import { decide } from '../decide.js';
import { isHold } from '../store-decision.js';
import type { Charge, Check, CheckAnswer, HeldLease, Refund, ReserveEntry, StoreDecision } from '../store.js';
import type { LearntRate, Lesson } from '../lesson.js';
import { StoreLayer } from './store-layer.js';

/**
 * Adds the candidates of limits to what is asked: each is an entry of the same check, behind those of the caller, who is not told
 * of it. What is done to a limit's counter is done to its candidate's.
 */
export class CandidateStore extends StoreLayer {
  override decide(check: Check, answer: CheckAnswer): void {
    const { entries, peek } = check;
    if (peek !== true) {
      for (let i = 0; i < entries.length; i++) {
        if (entries[i]!.limit.candidate === undefined) continue;
        const both = { ...check, entries: withCandidates(entries) };
        decide(this.inner, both, new AnswerWithCandidates(this, both, entries.length, answer));
        return;
      }
    }
    decide(this.inner, check, answer);
  }

  override async reserve(entry: ReserveEntry): Promise<StoreDecision> {
    const decision = await this.inner.reserve(entry);
    const { limit, cost: units } = entry;
    if (limit.algorithm.holding !== undefined && limit.shadow && !decision.allowed) {
      this.giveBack({ ...entry, units, source: decision.source, candidate: decision.candidate });
    }
    return decision;
  }

  override async refund(refunds: readonly Refund[]): Promise<void> {
    const all = refunds.slice();
    const charges: Charge[] = [];
    for (const refund of refunds) {
      const own = ofCandidate(refund);
      if (own === undefined) continue;
      const { units, actual = 0 } = own;
      // One that holds nothing gets back what was not used, or is charged what was used besides.
      if (refund.actual === undefined || isHold(own)) all.push(own);
      else if (actual < units) all.push({ ...own, units: units - actual });
      else if (actual > units) charges.push({ ...own, units: actual - units });
    }
    await Promise.all([this.inner.refund(all), ...charges.map((charge) => this.inner.penalize(charge))]);
  }

  override penalize(charge: Charge): Promise<void> {
    return this.both(charge, ofCandidate(charge), (each) => this.inner.penalize(each));
  }

  override block(counter: Counter, durationMs: number): Promise<void> {
    return this.both(counter, counterOfCandidate(counter), (each) => this.inner.block(each, durationMs));
  }

  protected override async learnt(counter: Counter, lesson: Lesson): Promise<LearntRate | undefined> {
    let rate: LearntRate | undefined;
    await this.both(counter, counterOfCandidate(counter), async (each) => {
      const learnt = await super.learnt(each, lesson);
      if (each === counter) rate = learnt;
    });
    return rate;
  }

  override async renew(lease: HeldLease): Promise<boolean> {
    const candidate = ofCandidate(lease);
    const [held] = await Promise.all([this.inner.renew(lease), candidate && this.inner.renew(candidate)]);
    return held;
  }

  override reset(counters: readonly Counter[]): Promise<void> {
    const candidates = counters.flatMap((counter) => counterOfCandidate(counter) ?? []);
    return this.inner.reset(candidates.length === 0 ? counters : [...counters, ...candidates]);
  }

  /**
   * Gives back what a candidate was charged for units that its limit would have refused in shadow mode: nobody else will. If that
   * fails, they come back by themselves in time.
   */
  giveBack(charge: Charge): void {
    const refund = ofCandidate(charge);
    if (refund !== undefined) this.inner.refund([refund]).catch(() => undefined);
  }

  /** Does the same to both in one turn, and so in one call. */
  private async both<C>(first: C, candidate: C | undefined, act: (each: C) => Promise<void>): Promise<void> {
    const acts = [act(first)];
    if (candidate !== undefined) acts.push(act(candidate));
    await Promise.all(acts);
  }
}

/** Hands on what the limits of the caller said. */
class AnswerWithCandidates implements CheckAnswer {
  constructor(
    private readonly store: CandidateStore,
    private readonly check: Check,
    /** How many entries are the caller's. */
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
      if (!decision.allowed) this.release(entries[i]!, decision, all[candidate]!, decisions);
      candidate++;
    }
    this.answer.decided(decisions);
  }

  failed(error: unknown): void {
    this.answer.failed(error);
  }

  /** Where a limit in shadow mode would have refused, no caller gives anything back. */
  private release(
    { limit, identity, cost: units }: CheckEntry,
    { source }: StoreDecision,
    candidate: StoreDecision,
    decisions: readonly StoreDecision[],
  ): void {
    const { entries, refundable = false } = this.check;
    if (!limit.shadow || !(refundable || limit.algorithm.holding !== undefined)) return;
    if (decisions.some((decision, index) => isRefusal(entries[index]!.limit, decision))) return;
    this.store.giveBack({ limit, identity, units, source, candidate });
  }
}

function withCandidates(entries: readonly CheckEntry[]): CheckEntry[] {
  const all = entries.slice();
  for (const { limit, identity, cost } of entries) {
    if (limit.candidate !== undefined) all.push({ limit: limit.candidate, identity, cost });
  }
  return all;
}

function counterOfCandidate({ limit, identity }: Counter): Counter | undefined {
  return limit.candidate && { limit: limit.candidate, identity };
}

/** The same charge of the limit's candidate, if it was charged: where no decision tells, as the limit was. */
function ofCandidate<C extends Charge>(charge: C): C | undefined {
  const { limit, candidate: decision, source } = charge;
  if (limit.candidate === undefined) return undefined;
  if (decision === undefined) return source === undefined ? { ...charge, limit: limit.candidate } : undefined;
  if (!decision.allowed) return undefined;
  const { ticket, chargedAt } = decision;
  return { ...charge, limit: limit.candidate, ticket, chargedAt, candidate: undefined };
}
