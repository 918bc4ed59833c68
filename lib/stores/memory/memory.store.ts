import type { ProcessLoad, WindowCount } from '../../algorithms/algorithm.js';
import { algorithms } from '../../algorithms/index.js';
import { RateLimitArgumentError } from '../../errors/errors.js';
import { messages } from '../../errors/messages.js';
import { isRefusal } from '../../limits/check-result.js';
import type { CompiledLimit } from '../../limits/compiled-limit.js';
import { type Counter, counterId, lineageId, startsOf } from '../../limits/counter.js';
import { plainIdentity } from '../../limits/identity.js';
import { type KeyDays, namedUnits, type NamedUnits, type TimeRange } from '../../limits/usage-range.js';
import { ProcessMeter } from '../../util/process-meter.js';
import { DirectStore, tell } from '../decide.js';
import { claimedDecision, isHold } from '../store-decision.js';
import {
  type Charge,
  type Check,
  type CheckAnswer,
  type Claim,
  type Credit,
  CREDIT_KNOWN_FOR,
  type HeldLease,
  type Refund,
  type ReserveEntry,
  type Store,
  type StoreDecision,
} from '../store.js';
import { blockFor } from './block.js';
import { Claims } from './claims.js';
import { CounterTable, defaultMaxBytes } from './counter-table.js';
import { type View, viewOf } from './counter-view.js';
import { Counters, MODES } from './counters.js';
import { evaluateReservation, tellAsker, toMs } from './evaluation.js';
import { settleHold } from './holding.js';
import { Learning } from './learning.js';
import type { LearntRate, Lesson } from '../lesson.js';
import { LearntRates } from './learnt-rates.js';
import { noteCorrection } from './usage-corrections.js';
import { UsageRecords } from './usage-records.js';

/** How a `MemoryStore` counts. */
export interface MemoryStoreOptions {
  /**
   * How many counters are kept at most; the least recently used goes first, those that are blocked, have offences or hold leases last.
   * @default 100_000
   */
  maxKeys?: number;
  /**
   * How many bytes they take at most, as far as that can be estimated.
   * @default 1_000 for each of `maxKeys`, and at least 16_000_000
   */
  maxBytes?: number | undefined;
  /**
   * The time in whole microseconds since the epoch.
   * @default the system's clock
   */
  clock?: (() => number) | undefined;
  /**
   * Milliseconds added to every time to live, as the script does for a clock that tests move.
   * @internal
   */
  slackMs?: number;
  /**
   * How busy the process is, for limits that adapt.
   * @default it is measured
   * @internal
   */
  load?: ProcessLoad | undefined;
}

/** Counts in this process: the same algorithms as on Redis, bounded, with one timer for all counters. */
export class MemoryStore extends DirectStore implements Store {
  private readonly table: CounterTable;
  private readonly counters: Counters;
  private readonly records: UsageRecords;
  private readonly learning = new Learning();
  private readonly rates = new LearntRates();
  private readonly claims = new Claims();
  private readonly meter = new ProcessMeter();
  private readonly load: ProcessLoad;
  /** @internal The time in whole microseconds. */
  readonly clock: () => number;

  /**
   * Counts nothing yet, and has no timer until it does.
   *
   * @param options how it counts
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
    this.load = load;
    this.table = new CounterTable(maxKeys, maxBytes, clock);
    this.records = new UsageRecords(maxKeys, maxBytes);
    this.counters = new Counters(this.table, slackMs, load, this.records);
  }

  /** How many counters are kept. */
  get size(): number {
    return this.table.size;
  }

  /** How many bytes they take, roughly. */
  get bytes(): number {
    return this.table.bytes;
  }

  /** @internal Decides one check, and returns the answer. */
  decideAtOnce(check: Check): StoreDecision[] {
    return this.counters.check(check, this.clock());
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
    tell(answer, decisions);
  }

  reserve(asked: ReserveEntry): Promise<StoreDecision> {
    const reservation = asked.ofStarts === true ? startsOf(asked) : asked;
    const { claim } = reservation;
    const now = this.clock();
    return Promise.resolve(
      claim === undefined ? this.reserveNow(reservation, now) : this.claim(reservation, claim, now),
    );
  }

  private claim(reservation: ReserveEntry, { id, keepMs, looks = false }: Claim, now: number): StoreDecision {
    const { limit, cost: units } = reservation;
    const keep = Math.round(keepMs * 1000);
    const delay = this.claims.recall(claimKeyOf(reservation, id), now, keep);
    if (delay !== undefined) return claimedDecision(limit, toMs(delay), 'memory');
    if (looks) return this.decideAtOnce({ entries: [reservation], peek: true })[0]!;
    const decision = this.reserveNow(reservation, now);
    const { candidate } = decision;
    const note = (counter: Counter, { ticket, delayMs }: StoreDecision) =>
      this.claims.add(claimKeyOf(counter, id), { units, ticket, chargedAt: now }, delayMs * 1000, keep);
    if (decision.allowed) note(reservation, decision);
    if (candidate?.allowed === true && !isRefusal(limit, decision))
      note({ ...reservation, limit: limit.candidate! }, candidate);
    return decision;
  }

  private reserveNow(reservation: ReserveEntry, now: number): StoreDecision {
    const { limit } = reservation;
    const view = this.viewFor(reservation, now);
    const beside = limit.candidate && this.viewFor({ ...reservation, limit: limit.candidate }, now);
    const charges = !isRefusal(limit, view);
    const decision = this.takeReserved(view, charges);
    if (beside !== undefined) decision.candidate = this.takeReserved(beside, charges);
    return decision;
  }

  private viewFor(reservation: ReserveEntry, now: number): View {
    const view = viewOf(this.table, reservation, now);
    view.cost = reservation.cost;
    if (reservation.limit.adapts) tellAsker(view, reservation, this.load, false);
    evaluateReservation(view, Math.floor(reservation.maxWaitMs * 1000), reservation.claim !== undefined);
    return view;
  }

  private takeReserved(view: View, charges: boolean): StoreDecision {
    const { algorithm, parameters } = view.limit;
    const decision = this.counters.commit(view, charges, MODES.reserve);
    if (view.allowed && charges) {
      decision.delayMs = toMs(view.delay ?? 0);
      const ticket = algorithm.reservation?.debtClearedAt(parameters, view.state);
      if (ticket !== undefined) decision.ticket = ticket;
    }
    return decision;
  }

  refund(refunds: readonly Refund[]): Promise<void> {
    const now = this.clock();
    for (const each of refunds) {
      const refund = each.ofStarts === true ? startsOf(each) : each;
      const view = viewOf(this.table, refund, now);
      const { algorithm, parameters } = refund.limit;
      const { claim } = refund;
      if (isHold(refund)) {
        if (!settleHold(view, refund)) continue;
      } else if (refund.limit.adapts && refund.ticket !== undefined) {
        algorithm.adapting!.ended(parameters, view.state, refund.ticket, refund.end ?? 'ignored');
      } else {
        const taken =
          claim === undefined ? refund : this.claims.release(claimKeyOf(refund, claim.id), now, !claim.isSpent);
        if (taken === undefined) continue;
        algorithm.give(parameters, view.state, taken.units, taken.ticket, taken.chargedAt);
        noteCorrection(view, -taken.units, taken.chargedAt);
      }
      this.counters.store(view);
    }
    return Promise.resolve();
  }

  credit(credit: Credit): Promise<number> {
    const { units, id, identity } = credit;
    const limit = credit.limit.whole;
    const now = this.clock();
    const view = viewOf(this.table, { limit, identity }, now);
    const { algorithm, parameters } = limit;
    const idKey = `${lineageId(limit, identity)}\n${id}`;
    if (id === undefined || this.table.credits.note(idKey, now, CREDIT_KNOWN_FOR)) {
      algorithm.varying!.credit(parameters, view.state, units);
      this.counters.store(view);
    }
    return Promise.resolve(algorithm.varying!.credits(parameters, view.state)!);
  }

  penalize(charge: Charge): Promise<void> {
    // Who may take less than all still owes all that was used.
    const { whole } = charge.limit;
    const view = viewOf(this.table, { ...charge, limit: whole }, this.clock());
    const { algorithm, parameters } = whole;
    const left = algorithm.remainingForAll?.(parameters, view.state) ?? algorithm.remaining(parameters, view.state);
    const units = Math.max(0, Math.min(charge.units, parameters.quota + left));
    algorithm.take(parameters, view.state, units);
    if (whole.usage !== undefined) this.counters.chargeRecord(view, units);
    this.counters.store(view);
    return Promise.resolve();
  }

  block(counter: Counter, durationMs: number): Promise<void> {
    const view = viewOf(this.table, counter, this.clock());
    view.block = blockFor(Math.round(durationMs * 1000), view.state.now, view.block ?? view.past);
    view.past = undefined;
    this.counters.store(view);
    return Promise.resolve();
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
    const held = algorithm.holding?.renew(parameters, view.state, lease.units, lease.ticket) ?? false;
    if (held) this.counters.store(view);
    return Promise.resolve(held);
  }

  reset(counters: readonly Counter[]): Promise<void> {
    for (const { limit, identity } of counters) {
      const key = counterId(limit, identity);
      this.table.forget(limit, identity);
      this.learning.forget(key);
      this.rates.forget(key);
    }
    return Promise.resolve();
  }

  history(counter: Counter): Promise<WindowCount[]> {
    const { algorithm, parameters } = counter.limit;
    if (algorithm.history === undefined) {
      return Promise.reject(
        new RateLimitArgumentError(messages.noHistory(counter.limit.name, algorithms.withAny('history'))),
      );
    }
    const { state } = viewOf(this.table, counter, this.clock());
    return Promise.resolve(algorithm.history(parameters, state));
  }

  usage(counter: Counter, range: TimeRange): Promise<NamedUnits[]> {
    const now = this.clock();
    this.releaseLapsed(counter, now);
    return Promise.resolve(namedUnits(counter.limit.usage!, range, this.records.days(counter, now), now));
  }

  async *usageOf(
    limit: CompiledLimit,
    range: TimeRange,
    batch: number,
    limitFor = (_identity: string) => limit,
  ): AsyncIterable<KeyDays[]> {
    let page: KeyDays[] = [];
    for (const { key, days: recorded } of this.records.keys(limit, this.clock())) {
      // What stands for a key that is long or odd does not tell the key.
      if (plainIdentity(key) === key) this.releaseLapsed({ limit: limitFor(key), identity: key }, this.clock());
      const days = namedUnits(limit.usage!, range, recorded, this.clock());
      if (days.length === 0) continue;
      page.push({ key, days });
      if (page.length < batch) continue;
      yield page;
      page = [];
    }
    if (page.length > 0) yield page;
  }

  /** Units of holds that have lapsed come off, some of them at a time. */
  private releaseLapsed(counter: Counter, now: number): void {
    for (let view; (view = viewOf(this.table, counter, now)).corrections !== undefined;) this.counters.store(view);
  }

  blockedFor(counter: Counter): Promise<number> {
    const { block, state } = viewOf(this.table, counter, this.clock());
    return Promise.resolve(block === undefined ? 0 : toMs(block.until - state.now));
  }

  close(): Promise<void> {
    this.counters.clear();
    this.records.clear();
    this.learning.clear();
    this.rates.clear();
    this.claims.clear();
    this.meter.close();
    return Promise.resolve();
  }
}

function claimKeyOf({ limit, identity }: Counter, id: string): string {
  return `${counterId(limit, identity)}\n${id}`;
}
