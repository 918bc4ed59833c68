import type { ProcessLoad, WindowCount } from '../../../engine/algorithms/algorithm.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { type Counter, counterId, lineageId, startsOf } from '../../../engine/limits/counter.js';
import { ProcessMeter } from '../../../engine/util/process-meter.js';
import { DirectStore, report } from '../decide.js';
import { type FeatureReading, READ } from '../feature-reading.js';
import { isEstimate, noHistory } from '../store-decision.js';
import {
  type Charge,
  type Check,
  type CheckAnswer,
  type Credit,
  CREDIT_KNOWN_FOR,
  type HeldLease,
  type Refund,
  type ReserveEntry,
  type Store,
  type StoreDecision,
} from '../store.js';
import { blockByHand } from './block.js';
import { CounterTable, defaultMaxBytes } from './counter-table.js';
import { View, viewOf } from './counter-view.js';
import { Counters } from './counters.js';
import { blockedFor, toMs } from './evaluation.js';
import { KeptByFeatures, noteCorrection } from './kept-by-features.js';
import { Learning } from './learning.js';
import type { LearntRate, Lesson } from '../lesson.js';
import { LearntRates } from './learnt-rates.js';
import { Reservations } from './reservations.js';

/** Options of a `MemoryStore`. */
export interface MemoryStoreOptions {
  /**
   * Maximum number of counters. The least recently used are evicted first; counters with blocks, offences or leases are evicted last.
   * Blocks and offences of evicted counters are kept separately, at most `maxKeys` of them.
   * @default 100_000
   */
  maxKeys?: number;
  /**
   * Maximum number of bytes that the counters may take, by estimate.
   * @default 1_000 per counter of `maxKeys`, and at least 16_000_000
   */
  maxBytes?: number | undefined;
  /**
   * The time in whole microseconds since the epoch.
   * @default the system's clock
   */
  clock?: (() => number) | undefined;
  /**
   * Milliseconds added to every time to live. The script does the same for a clock that tests move.
   * @internal
   */
  slackMs?: number;
  /**
   * The load of the process, for adaptive limits.
   * @default it is measured
   * @internal
   */
  load?: ProcessLoad | undefined;
}

/** Counts in this process, with the same algorithms as on Redis. Its memory is limited, and one timer serves all counters. */
export class MemoryStore extends DirectStore implements Store {
  /** @internal */
  protected readonly table: CounterTable;
  private readonly counters: Counters;
  private readonly features: KeptByFeatures;
  private readonly learning = new Learning();
  private readonly rates = new LearntRates();
  private readonly meter = new ProcessMeter();
  private readonly reservations: Reservations;
  /** True unless a subclass overrides how checks are decided. */
  private readonly isOwn = this.check === DirectStore.prototype.check && this.decide === MemoryStore.prototype.decide;
  /** @internal The time in whole microseconds. */
  readonly clock: () => number;

  /**
   * Creates an empty store. It starts its timer with the first counter.
   *
   * @param options limits of its memory
   */
  constructor(options: MemoryStoreOptions = {}) {
    super();
    const {
      maxKeys = 100_000,
      maxBytes = defaultMaxBytes(maxKeys),
      clock = () => Date.now() * 1000,
      slackMs = 0,
      load = this.meter,
    } = options;
    this.clock = clock;
    this.table = new CounterTable(maxKeys, maxBytes, clock);
    this.features = new KeptByFeatures({ maxKeys, maxBytes });
    this.counters = new Counters(this.table, slackMs, load, this.features);
    this.reservations = new Reservations(this.table, this.counters, load);
  }

  /** The number of counters. */
  get size(): number {
    return this.table.size;
  }

  /** The estimated bytes that the counters take. */
  get bytes(): number {
    return this.table.bytes;
  }

  /** @internal Decides one check synchronously. */
  decideAtOnce(check: Check): StoreDecision[] {
    const now = this.clock();
    if (check.reserving !== true) return this.counters.check(check, now);
    return this.reservations.make(check.entries as readonly ReserveEntry[], now);
  }

  /** @internal */
  override decideOne(limit: CompiledLimit, identity: string, cost: number): StoreDecision | undefined {
    return limit.isPlain && this.isOwn ? this.counters.one(limit, identity, cost, this.clock()) : undefined;
  }

  /** @internal */
  override decidesAtOnce(): boolean {
    return true;
  }

  /** @internal */
  decide(check: Check, answer: CheckAnswer): void {
    let decisions: StoreDecision[];
    try {
      decisions = this.decideAtOnce(check);
    } catch (error) {
      answer.failed(error);
      return;
    }
    report(answer, decisions);
  }

  refund(refunds: readonly Refund[]): Promise<void> {
    const now = this.clock();
    for (const each of refunds) {
      const refund = each.ofStarts === true ? startsOf(each) : each;
      const view = viewOf(this.table, refund, now);
      const { algorithm, parameters } = refund.limit;
      const { claim } = refund;
      if (isEstimate(refund)) {
        if (!refund.limit.estimates!.settled(view, refund)) continue;
      } else if (refund.limit.adapts && refund.ticket !== undefined) {
        algorithm.adapting!.ended(parameters, view.state, refund.ticket, refund.end ?? 'ignored');
      } else {
        const taken = claim === undefined ? refund : this.reservations.claims.release(refund, claim, now);
        if (taken === undefined) continue;
        algorithm.give(parameters, view.state, taken.units, taken.ticket, taken.chargedAt);
        noteCorrection(view, -taken.units, taken.chargedAt);
      }
      this.counters.store(view);
    }
    return Promise.resolve();
  }

  credit(credit: Credit): Promise<number> {
    return Promise.resolve(this.addCredits(credit, this.clock()));
  }

  private addCredits(credit: Credit, now: number): number {
    const { units, id, identity } = credit;
    const limit = credit.limit.whole;
    const view = viewOf(this.table, { limit, identity }, now);
    const { algorithm, parameters } = limit;
    const idKey = `${lineageId(limit, identity)}\n${id}`;
    if (id === undefined || this.table.credits.note(idKey, now, CREDIT_KNOWN_FOR)) {
      algorithm.varying!.credit(parameters, view.state, units);
      this.counters.store(view);
    }
    return algorithm.varying!.credits(parameters, view.state)!;
  }

  penalize(charge: Charge): Promise<void> {
    // Even if a key may only take a part of the quota, it owes everything that was used.
    const { whole } = charge.limit;
    const view = viewOf(this.table, { ...charge, limit: whole }, this.clock());
    const { algorithm, parameters } = whole;
    const left = algorithm.remainingForAll?.(parameters, view.state) ?? algorithm.remaining(parameters, view.state);
    const units = Math.max(0, Math.min(charge.units, parameters.quota + left));
    algorithm.take(parameters, view.state, units);
    this.features.charged(view, units, view.state.now);
    this.counters.store(view);
    return Promise.resolve();
  }

  block(counter: Counter, durationMs: number): Promise<boolean | void> {
    const view = viewOf(this.table, counter, this.clock());
    const before = view.block ?? view.past;
    view.block = blockByHand(Math.round(durationMs * 1000), view.state.now, before);
    view.past = undefined;
    this.counters.store(view);
    return Promise.resolve(before !== undefined);
  }

  learn(counter: Counter, lesson: Lesson): Promise<LearntRate | undefined> {
    const view = viewOf(this.table, counter, this.clock());
    const key = counterId(counter.limit, counter.identity);
    const isLearnt = this.learning.learn(key, view, lesson);
    const learnt = lesson.rate && this.rates.learn(key, view, lesson, lesson.rate);
    if (isLearnt || learnt?.changed === true) this.counters.store(view);
    return Promise.resolve(learnt?.rate);
  }

  renew(lease: HeldLease): Promise<boolean> {
    const view = viewOf(this.table, lease, this.clock());
    const { algorithm, parameters } = lease.limit;
    const held = algorithm.leases?.renew(parameters, view.state, lease.units, lease.ticket) ?? false;
    if (held) this.counters.store(view);
    return Promise.resolve(held);
  }

  reset(counters: readonly Counter[]): Promise<boolean | void> {
    let wasThere = false;
    for (const counter of counters) {
      const { limit, identity } = counter;
      const key = counterId(limit, identity);
      // First return estimates that have lapsed.
      this.releaseLapsed(counter);
      // Credits that came back, through a lapse or another rate, are only recorded in the counter so far.
      if (limit.takesCredits) this.addCredits({ ...counter, units: 0 }, this.clock());
      const { stored, block, past } = viewOf(this.table, counter, this.clock());
      wasThere ||= (stored ?? block ?? past) !== undefined;
      this.table.forget(limit, identity);
      this.learning.forget(key);
      this.rates.forget(key);
    }
    return Promise.resolve(wasThere);
  }

  history(counter: Counter): Promise<WindowCount[]> {
    const { algorithm, parameters } = counter.limit;
    if (algorithm.history === undefined) return Promise.reject(noHistory(counter.limit));
    return Promise.resolve(algorithm.history(parameters, this.look(counter).state));
  }

  /** @internal */
  [READ]<T>(_limit: CompiledLimit, reading: FeatureReading<T>): T {
    return reading.inMemory({
      kept: (keep) => this.features.of(keep),
      now: this.clock,
      open: (counter) => this.look(counter),
    });
  }

  /** The current state of a counter, without any lapsed estimates. Read-only. */
  private look(counter: Counter): View {
    return viewOf(this.table, counter, this.clock(), new View(), true);
  }

  /** Removes lapsed estimates from a counter, a few at a time. */
  private releaseLapsed(counter: Counter): void {
    if (counter.limit.estimates === undefined) return;
    const now = this.clock();
    for (let view; (view = viewOf(this.table, counter, now)).estimates?.haveLapsed === true;) this.counters.store(view);
  }

  blockedFor(counter: Counter): Promise<number> {
    return Promise.resolve(toMs(blockedFor(viewOf(this.table, counter, this.clock()))));
  }

  close(): Promise<void> {
    this.counters.clear();
    this.features.clear();
    this.learning.clear();
    this.rates.clear();
    this.reservations.claims.clear();
    this.meter.close();
    return Promise.resolve();
  }
}
