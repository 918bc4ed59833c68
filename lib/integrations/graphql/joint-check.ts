import type { Phase } from '../../app/config/common-limit-options.js';
import { counterId } from '../../engine/limits/counter.js';
import { leastImportant } from '../../engine/limits/arguments.js';
import type { Answers } from '../../nest/request/answers.js';
import { giveBack } from '../../nest/request/charges.js';
import type { Completions } from '../../nest/request/completions.js';
import type { LimitedRequest } from '../../nest/request/limited-request.js';
import { type RequestCheck, selectRules } from '../../nest/request/request-check.js';
import type { RuleEntry } from '../../app/rules/resolve/resolve.js';
import type { Rule } from '../../app/rules/rule.js';
import type { Store, StoreDecision } from '../../storage/stores/store.js';
import { ticketBefore } from '../../app/limiter/settlement.js';

/** The entry of one call for a counter that several calls may share. */
interface Part {
  readonly call: number;
  readonly entry: RuleEntry;
}

/** The combined cost of all calls for one counter. */
interface Sum {
  entry: RuleEntry;
  readonly parts: Part[];
}

/** Rules that apply to a call in addition to its own limits. */
export interface Extra {
  readonly rules: readonly Rule[];
  /** The rules that are charged this cost. */
  readonly counting: ReadonlySet<Rule>;
  readonly cost: number;
}

/** Decides several calls in one atomic check: all of them pass, or none is charged. */
export class JointCheck {
  constructor(
    private readonly requestCheck: RequestCheck,
    private readonly answers: Answers,
    private readonly completions: Completions,
    private readonly store: Store,
  ) {}

  /**
   * Decides several calls, which then run without a check of their own. Rejects if a limit rejects.
   *
   * @param whole asks what the calls do not
   * @param answered has no limits of its own, and stands for all of them: headers and refusals name their limits
   */
  async decide(
    phases: readonly Phase[],
    calls: readonly LimitedRequest[],
    whole: LimitedRequest,
    extra: Extra | undefined,
    answered: LimitedRequest,
  ): Promise<void> {
    const all = [whole, ...calls];
    // One after another, so that functions of limits can share their lookups.
    const asked: (readonly RuleEntry[])[] = [await this.extraEntries(whole, extra)];
    for (const call of calls) asked.push(await this.entriesOf(call, phases));
    const sums = sumsOf(asked);
    if (sums.length === 0) return;
    const entries = sums.map(({ entry }) => entry);
    const check = (await this.requestCheck.checkTogether(entries, whole))!;
    this.answers.describe(answered, check);
    const own = shared(sums, check.decisions, all.length);
    const holds = all.flatMap((call, index) => {
      const { entries: asks, decisions } = own[index]!;
      if (asks.length === 0) return [];
      const refundable = call.mayReplaceLimits || asks.some(({ rule }) => rule.mayGiveBack);
      const part = { entries: asks, decisions, store: this.store, refundable };
      call.record(part);
      return this.completions.complete(call, part) ?? [];
    });
    try {
      await Promise.all(holds);
    } catch (error) {
      for (const { charges } of all) await giveBack(charges);
      throw error;
    }
  }

  private async entriesOf(call: LimitedRequest, phases: readonly Phase[]): Promise<readonly RuleEntry[]> {
    const rules: Rule[] = [];
    for (const phase of phases) rules.push(...(await selectRules(phase, call)));
    return rules.length === 0 ? [] : this.requestCheck.entries(call, rules);
  }

  private async extraEntries(whole: LimitedRequest, extra: Extra | undefined): Promise<readonly RuleEntry[]> {
    if (extra === undefined || extra.rules.length === 0) return [];
    const { rules, counting, cost } = extra;
    const entries = await this.requestCheck.entries(whole, rules);
    return entries.map((entry) => (counting.has(entry.rule) ? { ...entry, cost } : entry));
  }
}

/** Adds up the costs of all calls per counter, since a check can't contain a counter twice. */
function sumsOf(asked: readonly (readonly RuleEntry[])[]): Sum[] {
  const sums = new Map<string, Sum>();
  for (const [call, entries] of asked.entries()) {
    for (const entry of entries) {
      const id = counterId(entry.limit, entry.identity);
      const sum = sums.get(id);
      if (sum === undefined) sums.set(id, { entry, parts: [{ call, entry }] });
      else add(sum, { call, entry });
    }
  }
  return [...sums.values()];
}

function add(sum: Sum, part: Part): void {
  const { entry: before, parts } = sum;
  const { entry } = part;
  parts.push(part);
  const cost = Math.min(before.cost + entry.cost, Number.MAX_SAFE_INTEGER);
  // If calls have different versions of a limit, the one with the smaller quota decides for all.
  const { limit } = entry.limit.quota < before.limit.quota ? entry : before;
  const priority = leastImportant([before.priority, entry.priority]);
  sum.entry = { ...before, limit, cost, ...(priority !== undefined && { priority }) };
}

/** The entries of each call, with the decisions about them. */
function shared(sums: readonly Sum[], decisions: readonly StoreDecision[], calls: number) {
  const own = Array.from({ length: calls }, () => ({
    entries: [] as RuleEntry[],
    decisions: [] as StoreDecision[],
  }));
  for (const [index, sum] of sums.entries()) {
    for (const { call, entry, decision } of split(sum, decisions[index]!)) {
      own[call]!.entries.push(entry);
      own[call]!.decisions.push(decision);
    }
  }
  return own;
}

/**
 * Splits one decision among the calls that it was made for, so that each call can return its own units. Leased units can't be split: the
 * first call gets all of them.
 */
function split({ entry: sum, parts }: Sum, decision: StoreDecision): (Part & { readonly decision: StoreDecision })[] {
  if (parts.length === 1) return [{ ...parts[0]!, decision }];
  const { limit } = sum;
  let after = sum.cost;
  return parts.map(({ call, entry }, index) => {
    if (limit.algorithm.leases !== undefined) {
      if (index === 0) return { call, entry: { ...entry, limit, cost: sum.cost }, decision };
      return { call, entry: { ...entry, limit }, decision: withTicket(decision, undefined, undefined) };
    }
    after -= entry.cost;
    const ticket = ticketBefore(limit, decision.ticket, after);
    const ofCandidate = limit.candidate && ticketBefore(limit.candidate, decision.candidate?.ticket, after);
    return { call, entry: { ...entry, limit }, decision: withTicket(decision, ticket, ofCandidate) };
  });
}

function withTicket(
  { ticket: _, candidate, ...decision }: StoreDecision,
  ticket: number | undefined,
  ofCandidate: number | undefined,
): StoreDecision {
  const own: StoreDecision = ticket === undefined ? decision : { ...decision, ticket };
  return candidate === undefined ? own : { ...own, candidate: withTicket(candidate, ofCandidate, undefined) };
}
