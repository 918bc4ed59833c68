import type { WindowCount } from '../../algorithms/algorithm.js';
import type { CompiledLimit } from '../../limits/compiled-limit.js';
import { keyOf } from '../redis/keys.js';
import type { InstanceChannel, Listener } from '../../redis/instance-channel.js';
import { LONGEST_IDENTITY } from '../../limits/identity.js';
import type { Charge, Check, HeldLease, Refund, ReserveEntry, Store, StoreDecision } from '../store.js';
import type { CheckEntry, Counter } from '../../limits/counter.js';
import { type Ask, PrefetchedUnits } from './prefetched-units.js';

/** Counters with a lease at most; any more are asked about one by one. */
const MAX_LEASES = 10_000;
/** How often what was not used in time is given back. */
const SWEEP_MS = 50;

/**
 * Decides by units that were taken from the store in advance, for limits with a `lease`. What is not used in time is given
 * back, and at the end all of it. Resets and blocks by any instance end leases on all of them.
 */
export class PrefetchStore implements Store, Listener {
  private readonly leases = new Map<CompiledLimit, Map<string, PrefetchedUnits>>();
  private readonly returning = new Set<Promise<void>>();
  private readonly ask: Ask = (check) => this.inner.check([check]).then(([decisions]) => decisions![0]!);
  private timer: NodeJS.Timeout | undefined;
  private count = 0;
  private listens = false;

  constructor(
    private readonly inner: Store,
    private readonly channel: InstanceChannel,
  ) {}

  async open(): Promise<void> {
    await this.inner.open?.();
  }

  /** Gives back all that is left before the store below is closed. */
  async close(): Promise<void> {
    clearInterval(this.timer);
    for (const lease of this.all()) lease.end();
    await Promise.all(this.returning);
    this.channel.close();
    await this.inner.close();
  }

  check(checks: readonly Check[]): Promise<StoreDecision[][]> {
    if (!checks.some(({ entries }) => entries.some(hasLease))) return this.inner.check(checks);
    const [only] = checks;
    if (checks.length === 1 && only !== undefined) {
      const decision = this.decideAtOnce(only);
      if (decision !== undefined) return Promise.resolve([[decision]]);
    }
    return Promise.all(checks.map((check) => this.decide(check)));
  }

  reserve(entry: ReserveEntry): Promise<StoreDecision> {
    const decision = this.decideAtOnce({ entries: [entry] });
    return decision === undefined ? this.inner.reserve(entry) : Promise.resolve(decision);
  }

  refund(refunds: readonly Refund[]): Promise<void> {
    return this.inner.refund(refunds);
  }

  penalize(charge: Charge): Promise<void> {
    return this.inner.penalize(charge);
  }

  async block(counter: Counter, durationMs: number): Promise<void> {
    const since = performance.now();
    this.existing(counter)?.end();
    await this.inner.block(counter, durationMs);
    await this.tell('end', [counter], since);
  }

  renew(lease: HeldLease): Promise<boolean> {
    return this.inner.renew(lease);
  }

  async reset(counters: readonly Counter[]): Promise<void> {
    const since = performance.now();
    for (const counter of counters) this.existing(counter)?.drop();
    await this.inner.reset(counters);
    await this.tell('drop', counters, since);
  }

  history(counter: Counter): Promise<WindowCount[]> {
    return this.inner.history(counter);
  }

  /** Another instance reset a counter, or blocked it. */
  onMessage(message?: string): void {
    if (!message) return;
    for (const lease of this.all()) {
      if (message === announcement('drop', lease)) lease.drop();
      else if (message === announcement('end', lease)) lease.end();
    }
  }

  /** What takes no call: most checks of a busy counter. */
  private decideAtOnce({ entries, peek = false }: Check): StoreDecision | undefined {
    const [entry] = entries;
    if (entries.length !== 1 || entry === undefined || peek) return undefined;
    return this.existing(entry)?.use(entry.cost, performance.now());
  }

  /** Takes what is leased first; if the check is refused, it is put back. */
  private async decide(check: Check): Promise<StoreDecision[]> {
    const { entries, peek = false } = check;
    const leased = entries.filter(hasLease);
    if (leased.length === 0) return this.only(check);
    if (peek) return this.look(check);
    // What is asked in two steps has one deadline.
    const { since = performance.now() } = check;
    const outcomes = await Promise.allSettled(leased.map((entry) => this.take(entry)));
    const answers = new Map<CheckEntry, StoreDecision>();
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status === 'fulfilled') answers.set(leased[index]!, outcome.value);
    }
    try {
      const failure = outcomes.find((outcome) => outcome.status === 'rejected');
      if (failure !== undefined) throw failure.reason;
      const refused = leased.some((entry) => refuses(entry, answers.get(entry)!));
      const others = entries.filter((entry) => !hasLease(entry));
      const told = others.length === 0 ? [] : await this.only({ ...check, entries: others, peek: refused, since });
      for (const [index, entry] of others.entries()) answers.set(entry, told[index]!);
      if (refused || others.some((entry) => refuses(entry, answers.get(entry)!))) this.putBack(leased, answers);
    } catch (error) {
      this.putBack(leased, answers);
      throw error;
    }
    return entries.map((entry) => answers.get(entry)!);
  }

  private async take(entry: CheckEntry): Promise<StoreDecision> {
    const lease = this.leaseOf(entry);
    if (lease === undefined) return this.ask({ entries: [entry], refundable: true });
    return lease.use(entry.cost, performance.now()) ?? lease.take(entry.cost);
  }

  /** Nothing was charged after all, and what was to be is left. */
  private putBack(leased: readonly CheckEntry[], answers: Map<CheckEntry, StoreDecision>): void {
    for (const entry of leased) {
      const decision = answers.get(entry);
      if (decision?.allowed !== true) continue;
      const { limit, identity, cost: units } = entry;
      const lease = this.existing(entry);
      if (lease !== undefined) lease.putBack(units, decision);
      else this.giveBack({ limit, identity, units, chargedAt: decision.chargedAt, source: decision.source });
      answers.set(entry, { ...decision, remaining: Math.min(decision.quota, decision.remaining + units) });
    }
  }

  /** What others hold is not known, but what is held here counts as left. */
  private async look(check: Check): Promise<StoreDecision[]> {
    const now = performance.now();
    const decisions = await this.only(check);
    return decisions.map((decision, index) => {
      const entry = check.entries[index]!;
      return this.existing(entry)?.adjusted(decision, entry.cost, now) ?? decision;
    });
  }

  private async only(check: Check): Promise<StoreDecision[]> {
    const [decisions = []] = await this.inner.check([check]);
    return decisions;
  }

  private existing({ limit, identity }: Counter): PrefetchedUnits | undefined {
    return this.leases.get(limit)?.get(identity);
  }

  private leaseOf(counter: Counter): PrefetchedUnits | undefined {
    const { limit, identity } = counter;
    const known = this.existing(counter);
    // A long identity takes memory for as long as the lease is there.
    if (known !== undefined || this.count >= MAX_LEASES || identity.length > LONGEST_IDENTITY) return known;
    let leases = this.leases.get(limit);
    if (leases === undefined) this.leases.set(limit, (leases = new Map()));
    const lease = new PrefetchedUnits(limit, identity, this.ask, (refund) => this.giveBack(refund));
    leases.set(identity, lease);
    this.count++;
    if (!this.listens) this.channel.listen(this);
    this.listens = true;
    this.timer ??= setInterval(() => this.sweep(), SWEEP_MS).unref();
    return lease;
  }

  private sweep(): void {
    const now = performance.now();
    for (const [limit, leases] of this.leases) {
      for (const [identity, lease] of leases) {
        lease.expire(now);
        if (!lease.isIdle || now < lease.until + limit.prefetch!.ttl / 1000) continue;
        leases.delete(identity);
        this.count--;
      }
      if (leases.size === 0) this.leases.delete(limit);
    }
    if (this.count > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private *all(): Iterable<PrefetchedUnits> {
    for (const leases of this.leases.values()) yield* leases.values();
  }

  /** Units that cannot be given back come back by themselves in time. */
  private giveBack(refund: Refund): void {
    const returned: Promise<void> = this.inner
      .refund([refund])
      .catch(() => undefined)
      .finally(() => this.returning.delete(returned));
    this.returning.add(returned);
  }

  private async tell(what: 'end' | 'drop', counters: readonly Counter[], since: number): Promise<void> {
    const leased = counters.filter(hasLease);
    await Promise.all(leased.map((counter) => this.channel.publish(announcement(what, counter), since)));
  }
}

/** What instances tell each other: no identity that may be secret. */
function announcement(what: 'end' | 'drop', counter: Counter): string {
  return keyOf(what, counter);
}

function hasLease({ limit }: Counter): boolean {
  return limit.prefetch !== undefined;
}

function refuses({ limit }: CheckEntry, { allowed }: StoreDecision): boolean {
  return !allowed && !limit.shadow;
}
