import { setTimeout as sleep } from 'node:timers/promises';
import { RateLimitStoreError } from '../../../engine/errors/errors.js';
import type { CheckEntry } from '../../../engine/limits/counter.js';
import { decideInTwo } from '../../stores/all-or-nothing.js';
import type { LocalDecisions } from '../../stores/layers/local-decisions.js';
import type { Layer } from '../../stores/layers/store-layer.js';
import type { Check, Refund, StoreDecision } from '../../stores/store.js';
import { chargesOf } from '../../stores/store-decision.js';
import type { Exchanges } from './exchanges.js';
import { worldMessages } from './messages.js';
import type { RegionCounter } from './region-counter.js';

/** Maximum number of exchanges that a check waits for. */
const MOST_EXCHANGES = 8;
/** How long to wait for an exchange of another instance before checking again, in milliseconds. */
const LOOK_AGAIN_MS = 10;

/** A counter that lacks units, and how many. */
export interface Missing {
  readonly entry: CheckEntry;
  readonly counter: RegionCounter;
}

/** Decides checks for which the region lacks units: requests them from the home, and checks again. */
export class MissingUnits {
  constructor(
    /** The server of the region. */
    private readonly region: Pick<Layer, 'decided' | 'refund'>,
    private readonly exchanges: Exchanges,
    /** Decides limits whose home doesn't answer. */
    private readonly alone: LocalDecisions,
    private readonly timeoutMs: number,
  ) {}

  async waitFor(check: Check, missing: readonly Missing[], refusal: StoreDecision[]): Promise<StoreDecision[]> {
    for (const { counter } of missing) counter.waiters++;
    try {
      return await this.exchangeFor(check, missing, refusal);
    } finally {
      for (const { counter } of missing) counter.waiters--;
    }
  }

  /** Requests the missing units from the home and checks again. In the end, the units in the region decide. */
  private async exchangeFor(
    check: Check,
    first: readonly Missing[],
    refusal: StoreDecision[],
  ): Promise<StoreDecision[]> {
    const { since = performance.now() } = check;
    let missing = first;
    let decisions = refusal;
    for (let exchanges = 0; exchanges < MOST_EXCHANGES;) {
      if (missing.length < check.entries.length && isCharged(check, decisions)) {
        return this.exchangeForShadows(check, missing, decisions);
      }
      try {
        if (this.exchanges.home.isCut) throw this.exchanges.home.cutOff();
        const asked = missing.map(({ entry: { cost }, counter }) =>
          counter.exchangeFor(cost, check.upTo === true ? 1 : cost),
        );
        const outcomes = await this.inTime(Promise.all(asked), since);
        if (outcomes.includes('waiting')) await this.inTime(sleep(LOOK_AGAIN_MS), since);
        else exchanges++;
      } catch (error) {
        // The home answers, but has fewer units than requested.
        if (exchanges > 0 && !this.exchanges.home.isCut) return decisions;
        return this.decideWithout({ ...check, since }, missing, error);
      }
      const again = await this.decideAgain(check, since);
      // The home answers, but has fewer units than requested.
      if (again === undefined) return decisions;
      decisions = again;
      const still = this.read(check, decisions);
      if (still === undefined) return decisions;
      missing = still;
    }
    return decisions;
  }

  /** Requests units for limits in shadow mode. All other limits were charged, because shadow limits never reject. */
  private async exchangeForShadows(
    check: Check,
    missing: readonly Missing[],
    decisions: StoreDecision[],
  ): Promise<StoreDecision[]> {
    if (check.upTo === true) return decisions;
    const entries = missing.map(({ entry }) => entry);
    const before = entries.map((entry) => decisions[check.entries.indexOf(entry)]!);
    try {
      const after = await this.exchangeFor({ ...check, entries }, missing, before);
      return check.entries.map((entry, index) => after[entries.indexOf(entry)] ?? decisions[index]!);
    } catch (error) {
      const isAsked = (_: unknown, index: number) => !entries.includes(check.entries[index]!);
      const charged = chargesOf(check.entries.filter(isAsked), decisions.filter(isAsked));
      await this.region.refund(charged).catch(() => undefined);
      throw error;
    }
  }

  /**
   * The decision of the region's server after a wait for the home; `undefined` if the check is out of time before. The server has a
   * deadline of its own, which doesn't depend on how long the home took. Units that are taken too late are returned.
   */
  async decideAgain({ since: _, ...check }: Check, since: number): Promise<StoreDecision[] | undefined> {
    const asked = this.region.decided(check);
    const decisions = await Promise.race([asked, endOf(since + this.timeoutMs)]);
    if (decisions === undefined && check.peek !== true) {
      asked
        .then((late) => (isCharged(check, late) ? this.region.refund(chargesOf(check.entries, late)) : undefined))
        .catch(() => undefined);
    }
    return decisions;
  }

  /** Decides limits whose home doesn't answer by their `onStoreError`, and all other limits in the store. */
  async decideWithout(check: Check, missing: readonly Missing[], error: unknown): Promise<StoreDecision[]> {
    if (!(error instanceof RateLimitStoreError)) throw error;
    const { entries, strict = false } = check;
    const alone = missing.map(({ entry }) => entry);
    if (entries.every((entry) => alone.includes(entry))) return this.alone.decide(check, error);
    const here = {
      decided: (part: Check) => this.alone.decide({ ...part, strict }, error),
      refund: (refunds: readonly Refund[]) => this.region.refund(refunds),
    };
    const there = {
      decided: async (part: Check) => {
        const decisions = await this.region.decided({ ...part, since: performance.now() });
        this.read(part, decisions);
        return decisions;
      },
      refund: here.refund,
    };
    return decideInTwo(check, alone, here, there);
  }

  /** Reads the script's notes about decisions. Returns the counters that may get the missing units, if the check lacks nothing else. */
  read({ entries, peek }: Check, decisions: StoreDecision[]): Missing[] | undefined {
    const missing: Missing[] = [];
    let isFinal = peek === true;
    for (const [index, decision] of decisions.entries()) {
      const entry = entries[index]!;
      const { note } = decision;
      if (note !== undefined) {
        delete decision.note;
        const counter = this.exchanges.of(entry);
        const mayCome = counter.noted(note, decision.allowed);
        if (decision.allowed) continue;
        if (mayCome && entry.cost <= entry.limit.quota) {
          missing.push({ entry, counter });
          continue;
        }
        if (peek !== true) counter.refused();
      }
      if (!decision.allowed && !entry.limit.shadow) isFinal = true;
    }
    if (!isFinal && missing.length > 0) return missing;
    // The home has units left that could be granted, so these limits don't reject.
    for (const { entry } of missing) {
      const decision = decisions[entries.indexOf(entry)]!;
      if (decision.remaining >= entry.cost) Object.assign(decision, { allowed: true, retryAfterMs: 0 });
    }
    return undefined;
  }

  async inTime<T>(promise: Promise<T>, since: number): Promise<T> {
    return Promise.race([promise, endOf(since + this.timeoutMs).then(() => Promise.reject(this.tooLate()))]);
  }

  tooLate(): RateLimitStoreError {
    return new RateLimitStoreError(worldMessages.tooLate(this.timeoutMs), { code: 'SLUICE_HOME_UNREACHABLE' });
  }
}

/** Returns true if a check took units of all limits that allow it. */
function isCharged({ entries }: Pick<Check, 'entries'>, decisions: readonly StoreDecision[]): boolean {
  return entries.every(({ limit }, index) => limit.shadow || decisions[index]!.allowed);
}

/** Resolves at a time of the process's clock, but only after everything that has arrived by then is read. */
function endOf(time: number): Promise<undefined> {
  return new Promise((resolve) => {
    setTimeout(() => setImmediate(() => resolve(undefined)), time - performance.now());
  });
}
