import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { keyOf } from '../../stores/redis/keys.js';
import type { InstanceChannel, Listener } from '../../redis/instance-channel.js';
import { isRefusal } from '../../../engine/limits/decision.js';
import { LONGEST_IDENTITY } from '../../../engine/limits/identity.js';
import { allOrNothing, type Part } from '../../stores/all-or-nothing.js';
import { answerWith, report } from '../../stores/decide.js';
import {
  blocksNobody,
  type Operation,
  type OperationAnswer,
  type OperationName,
  rowOf,
} from '../../stores/operation.js';
import type { Check, CheckAnswer, Refund, ReserveEntry, Store, StoreDecision } from '../../stores/store.js';
import { chargeOf } from '../../stores/store-decision.js';
import type { CheckEntry, Counter } from '../../../engine/limits/counter.js';
import { limitPrefetchOf } from './terms.js';
import { type Ask, PrefetchedUnits } from './prefetched-units.js';
import { StoreLayer } from '../../stores/layers/store-layer.js';

/** Maximum number of counters with prefetched units; other counters are checked without. */
const MAX_COUNTERS = 10_000;
/** How often unused units are returned. */
const SWEEP_MS = 50;

/**
 * Decides checks with units that were taken from the store in advance, for limits with `prefetch`. Unused units are returned after their
 * time, and all of them when the store closes. A reset or a block on any instance ends the units of all instances.
 */
export class PrefetchStore extends StoreLayer implements Listener {
  private readonly units = new Map<CompiledLimit, Map<string, PrefetchedUnits>>();
  private readonly returning = new Set<Promise<void>>();
  private readonly ask: Ask = (check) => this.inner.decided(check).then(([decision]) => decision!);
  private timer: NodeJS.Timeout | undefined;
  private count = 0;
  private listens = false;

  constructor(
    inner: Store,
    private readonly channel: InstanceChannel,
  ) {
    super(inner);
  }

  /** Returns all units that are left before the store below is closed. */
  override async close(): Promise<void> {
    clearInterval(this.timer);
    for (const units of this.all()) units.end();
    await Promise.all(this.returning);
    await this.inner.close();
  }

  override decideOne(limit: CompiledLimit, identity: string, cost: number): StoreDecision | undefined {
    if (cost === 0) return undefined;
    return this.units.get(limit)?.get(identity)?.use(cost, performance.now());
  }

  override decide(check: Check, answer: CheckAnswer): void {
    const decision = check.entries.some(takes) ? this.decideAtOnce(check) : undefined;
    if (decision !== undefined) report(answer, [decision]);
    else if (check.reserving === true || !check.entries.some(takes)) this.inner.decide(check, answer);
    else if (check.upTo === true && check.peek !== true) answerWith(this.takeFromStore(check), answer);
    else answerWith(this.decideInParts(check), answer);
  }

  override async operate<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>> {
    const { ahead: end } = rowOf(operation);
    const counters = operation.counters.filter(prefetches);
    if (end === undefined || counters.length === 0 || blocksNobody(operation)) return super.operate(operation);
    const since = performance.now();
    for (const counter of counters) this.existing(counter)?.[end]();
    const answer = await super.operate(operation);
    await Promise.all(counters.map((counter) => this.channel.publish(announcement(end, counter), since)));
    return answer;
  }

  /** Another instance has reset or blocked a counter. */
  onMessage(message?: string): void {
    if (!message) return;
    for (const units of this.all()) {
      if (message === announcement('drop', units)) units.drop();
      else if (message === announcement('end', units)) units.end();
    }
  }

  /** Decides a check without a call. Most checks of a busy counter are decided here. */
  private decideAtOnce({ entries, peek = false }: Check): StoreDecision | undefined {
    const [entry] = entries as readonly [CheckEntry & Partial<ReserveEntry>];
    if (entries.length !== 1 || peek || entry.claim !== undefined || entry.ofStarts === true) return undefined;
    return this.existing(entry)?.use(entry.cost, performance.now());
  }

  /** Takes as many units as fit. Units held here are returned first, so that the store can give them out. */
  private async takeFromStore(check: Check): Promise<StoreDecision[]> {
    const { since = performance.now() } = check;
    for (const entry of check.entries) this.existing(entry)?.end();
    await Promise.all(this.returning);
    return this.inner.decided({ ...check, since });
  }

  /** Takes prefetched units first; if the check is rejected, they are put back. */
  private async decideInParts(check: Check): Promise<StoreDecision[]> {
    const { entries, peek = false } = check;
    const prefetched = entries.filter(takes);
    if (peek) return this.look(check);
    const parts: Part[] = [
      {
        entries: prefetched,
        ask: () => this.takeAll(prefetched),
        giveBack: async (charged) => this.putBack(prefetched, charged),
        afterwards: (charged) => charged.map((decision, index) => withUnits(decision, prefetched[index]!)),
      },
    ];
    const others = entries.filter((entry) => !takes(entry));
    // A check in two steps has one deadline.
    const { since = performance.now() } = check;
    const asked = { ...check, entries: others, since };
    if (others.length > 0)
      parts.push({
        entries: others,
        ask: (peeks) => this.inner.decided({ ...asked, peek: peeks }),
      });
    return allOrNothing(entries, parts, peek);
  }

  /** Takes units of all counters or of none. */
  private async takeAll(entries: readonly CheckEntry[]): Promise<StoreDecision[]> {
    const outcomes = await Promise.allSettled(entries.map((entry) => this.take(entry)));
    const failure = outcomes.find((outcome) => outcome.status === 'rejected');
    const taken = outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : undefined));
    const isRefused = taken.some((decision, index) => decision && isRefusal(entries[index]!.limit, decision));
    if (failure !== undefined || isRefused) this.putBack(entries, taken);
    if (failure !== undefined) throw failure.reason;
    const decisions = taken as StoreDecision[];
    return isRefused ? decisions.map((decision, index) => withUnits(decision, entries[index]!)) : decisions;
  }

  private async take(entry: CheckEntry): Promise<StoreDecision> {
    const units = this.unitsFor(entry);
    if (units === undefined) return this.ask({ entries: [entry], refundable: true });
    return units.use(entry.cost, performance.now()) ?? units.take(entry.cost);
  }

  private putBack(entries: readonly CheckEntry[], taken: readonly (StoreDecision | undefined)[]): void {
    for (const [index, entry] of entries.entries()) {
      const decision = taken[index];
      if (decision?.allowed !== true) continue;
      const prefetched = this.existing(entry);
      if (prefetched !== undefined) prefetched.putBack(entry.cost, decision);
      else this.giveBack(chargeOf(entry, decision));
    }
  }

  /** Reads counters. Units held here count as left; those of other instances are unknown. */
  private async look(check: Check): Promise<StoreDecision[]> {
    const now = performance.now();
    const decisions = await this.inner.decided(check);
    return decisions.map((decision, index) => {
      const entry = check.entries[index]!;
      return this.existing(entry)?.adjusted(decision, entry.cost, now) ?? decision;
    });
  }

  private existing({ limit, identity }: Counter): PrefetchedUnits | undefined {
    return this.units.get(limit)?.get(identity);
  }

  private unitsFor(counter: Counter): PrefetchedUnits | undefined {
    const { limit, identity } = counter;
    const known = this.existing(counter);
    // A long identity would use memory for as long as the units are kept.
    if (known !== undefined || this.count >= MAX_COUNTERS || identity.length > LONGEST_IDENTITY) return known;
    let ofLimit = this.units.get(limit);
    if (ofLimit === undefined) this.units.set(limit, (ofLimit = new Map()));
    const units = new PrefetchedUnits(limit, limitPrefetchOf(limit)!.terms, identity, this.ask, (refund) =>
      this.giveBack(refund),
    );
    ofLimit.set(identity, units);
    this.count++;
    if (!this.listens) this.channel.listen(this);
    this.listens = true;
    this.timer ??= setInterval(() => this.sweep(), SWEEP_MS).unref();
    return units;
  }

  private sweep(): void {
    const now = performance.now();
    for (const [limit, ofLimit] of this.units) {
      for (const [identity, units] of ofLimit) {
        units.expire(now);
        if (!units.isIdle || now < units.until + units.ttlMs) continue;
        ofLimit.delete(identity);
        this.count--;
      }
      if (ofLimit.size === 0) this.units.delete(limit);
    }
    if (this.count > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private *all(): Iterable<PrefetchedUnits> {
    for (const ofLimit of this.units.values()) yield* ofLimit.values();
  }

  /** Units that can't be returned come back on their own in time. */
  private giveBack(refund: Refund): void {
    const returned: Promise<void> = this.inner
      .refund([refund])
      .catch(() => undefined)
      .finally(() => this.returning.delete(returned));
    this.returning.add(returned);
  }
}

/** The message that instances publish. It must not contain identities, since these may be secret. */
function announcement(what: 'end' | 'drop', counter: Counter): string {
  return keyOf(what, counter);
}

function prefetches({ limit }: Counter): boolean {
  return limitPrefetchOf(limit) !== undefined;
}

/** Returns true if an entry takes prefetched units. An entry with a cost of 0 reads from the store. */
function takes(entry: CheckEntry): boolean {
  return entry.cost > 0 && prefetches(entry);
}

/** The decision after its units were put back. */
function withUnits(decision: StoreDecision, { cost }: CheckEntry): StoreDecision {
  if (!decision.allowed) return decision;
  return { ...decision, remaining: Math.min(decision.quota, decision.remaining + cost) };
}
