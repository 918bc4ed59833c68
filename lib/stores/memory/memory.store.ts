import { issuesTickets, type State, type WindowCount } from '../../algorithms/algorithm.js';
import { algorithms } from '../../algorithms/index.js';
import type { CompiledLimit } from '../../limits/compiled-limit.js';
import { inProportion } from '../../algorithms/scale.js';
import { RateLimitArgumentError } from '../../errors/errors.js';
import { messages } from '../../errors/messages.js';
import { BoundedMap, Kept } from '../../util/bounded-map.js';
import { boundedIdentity } from '../../limits/identity.js';
import type { Charge, Check, HeldLease, Refund, ReserveEntry, Store, StoreDecision } from '../store.js';
import type { CheckEntry, Counter } from '../../limits/counter.js';

/** How a `MemoryStore` counts. */
export interface MemoryStoreOptions {
  /**
   * How many counters are kept at most; the least recently used goes first, those that are blocked or hold leases last.
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
}

/** How long a counter is refused: until a time, and for how long that was; in microseconds. */
interface Block {
  readonly until: number;
  readonly duration: number;
}

/** A counter as of now. */
interface View extends Counter {
  readonly key: string;
  readonly stored: Entry | undefined;
  /** What is there of it, if only its place. */
  readonly kept: Entry | undefined;
  readonly state: State;
  block: Block | undefined;
  /** What a check asks for, and whether it fits. */
  cost: number;
  fits: boolean;
  /** How long units that are reserved have to be waited for. */
  delay: number | undefined;
}

class Entry extends Kept {
  /** Nothing if it equals a fresh one. */
  state: State | undefined;
  block: Block | undefined;
  /** The quota that its units were carried over to. */
  carried: number | undefined;
  /** When the state equals a fresh one and may be forgotten, in microseconds. */
  expiresAt = 0;
}

/** What a check does besides deciding: whether it only looks, blocks whom it refuses, and says when it charged. */
interface CheckMode {
  readonly peek: boolean;
  readonly blocks: boolean;
  readonly refundable: boolean;
}

const CONSUME: CheckMode = { peek: false, blocks: true, refundable: false };
const CONSUME_REFUNDABLE: CheckMode = { peek: false, blocks: true, refundable: true };
const PEEK: CheckMode = { peek: true, blocks: false, refundable: false };
const RESERVE: CheckMode = { peek: false, blocks: false, refundable: true };

const SWEEP_INTERVAL_MS = 100;
/** A sweep looks at one in so many of the counters that may be kept, so that it never holds the process up. */
const SWEEP_SHARE = 100;

/** How much memory may be taken for each counter that may be kept, on the average. Most take less than half of it. */
const BYTES_A_KEY = 1000;
/** Few counters may be large ones. */
const LEAST_BYTES = 16_000_000;
/** What a counter with a key of no characters takes, in bytes: as it was measured, without what its algorithm lists. */
const ENTRY_BYTES = 400;
/** Identities need not be ASCII. */
const CHARACTER_BYTES = 2;

/** How many bytes so many counters may take, unless told otherwise. */
export function defaultMaxBytes(maxKeys: number): number {
  return Math.max(LEAST_BYTES, Math.min(maxKeys * BYTES_A_KEY, Number.MAX_SAFE_INTEGER));
}

/** Counts in this process: the same algorithms as on Redis, bounded, with one timer for all counters. */
export class MemoryStore implements Store {
  private readonly entries: BoundedMap<Entry>;
  private readonly maxKeys: number;
  /** @internal The time in whole microseconds. */
  readonly clock: () => number;
  private readonly slackMs: number;
  private timer: NodeJS.Timeout | undefined;
  private sweeping: Iterator<Entry> | undefined;

  /**
   * Counts nothing yet, and has no timer until it does.
   *
   * @param options how it counts
   */
  constructor(options: MemoryStoreOptions = {}) {
    const {
      maxKeys = 100_000,
      maxBytes = defaultMaxBytes(maxKeys),
      clock = () => Date.now() * 1000,
      slackMs = 0,
    } = options;
    this.maxKeys = maxKeys;
    this.entries = new BoundedMap(maxKeys, maxBytes);
    this.clock = clock;
    this.slackMs = slackMs;
  }

  /** How many counters are kept. */
  get size(): number {
    return this.entries.size;
  }

  /** How many bytes they take, roughly. */
  get bytes(): number {
    return this.entries.bytes;
  }

  // eslint-disable-next-line typescript/require-await -- a wrong call has to reject, not to throw
  async check(checks: readonly Check[]): Promise<StoreDecision[][]> {
    const now = this.clock();
    const only = checks[0];
    if (only !== undefined && checks.length === 1) return [this.decide(only, now)];
    return checks.map((check) => this.decide(check, now));
  }

  reserve(reservation: ReserveEntry): Promise<StoreDecision> {
    const { cost, limit, maxWaitMs } = reservation;
    const { algorithm, parameters } = limit;
    const view = this.view(reservation, this.clock());
    view.cost = cost;
    reserve(view, Math.floor(maxWaitMs * 1000));
    const decision = this.commit(view, view.fits, RESERVE);
    if (view.fits) {
      decision.delayMs = toMs(view.delay ?? 0);
      const ticket = algorithm.reservation?.debtClearedAt(parameters, view.state);
      if (ticket !== undefined) decision.ticket = ticket;
    }
    return Promise.resolve(decision);
  }

  refund(refunds: readonly Refund[]): Promise<void> {
    const now = this.clock();
    for (const refund of refunds) {
      const view = this.view(refund, now);
      const { algorithm, parameters } = refund.limit;
      algorithm.give(parameters, view.state, refund.units, refund.ticket, refund.chargedAt);
      this.store(view);
    }
    return Promise.resolve();
  }

  penalize(charge: Charge): Promise<void> {
    const view = this.view(charge, this.clock());
    const { algorithm, parameters } = charge.limit;
    const room = parameters.quota + algorithm.remaining(parameters, view.state);
    algorithm.take(parameters, view.state, Math.max(0, Math.min(charge.units, room)));
    this.store(view);
    return Promise.resolve();
  }

  block(counter: Counter, durationMs: number): Promise<void> {
    const view = this.view(counter, this.clock());
    view.block = blockFor(Math.round(durationMs * 1000), view.state);
    this.store(view);
    return Promise.resolve();
  }

  renew(lease: HeldLease): Promise<boolean> {
    const view = this.view(lease, this.clock());
    const { algorithm, parameters } = lease.limit;
    const held = algorithm.holding?.renew(parameters, view.state, lease.units, lease.ticket) ?? false;
    if (held) this.store(view);
    return Promise.resolve(held);
  }

  reset(counters: readonly Counter[]): Promise<void> {
    for (const { limit, identity } of counters) this.forget(keyOf(limit, identity));
    return Promise.resolve();
  }

  history(counter: Counter): Promise<WindowCount[]> {
    const { algorithm, parameters } = counter.limit;
    if (algorithm.history === undefined) {
      return Promise.reject(
        new RateLimitArgumentError(messages.noHistory(counter.limit.name, algorithms.withAny('history'))),
      );
    }
    const { state } = this.view(counter, this.clock());
    return Promise.resolve(algorithm.history(parameters, state));
  }

  close(): Promise<void> {
    clearInterval(this.timer);
    this.timer = undefined;
    this.entries.clear();
    return Promise.resolve();
  }

  /** Looks at all limits first, then charges all or none. */
  private decide({ entries, peek = false, refundable = false }: Check, now: number): StoreDecision[] {
    const how = peek ? PEEK : refundable ? CONSUME_REFUNDABLE : CONSUME;
    const only = entries[0];
    if (only !== undefined && entries.length === 1) {
      if (!peek && !refundable && isPlain(only.limit)) {
        const decision = this.decidePlainly(only, now);
        if (decision !== undefined) return [decision];
      }
      const view = this.evaluate(only, now);
      return [this.commit(view, view.fits || only.limit.shadow, how)];
    }
    const views = entries.map((entry) => this.evaluate(entry, now));
    const allowed = views.every((view) => view.fits || view.limit.shadow);
    return views.map((view) => this.commit(view, allowed, how));
  }

  /** As `decide`, but with no view made: of a counter that is neither blocked nor carried over. Most are not. */
  private decidePlainly({ limit, identity, cost }: CheckEntry, now: number): StoreDecision | undefined {
    const { algorithm, parameters, quota } = limit;
    const key = keyOf(limit, identity);
    const kept = this.entries.get(key);
    if (kept !== undefined && (kept.block !== undefined || kept.carried !== undefined)) return undefined;
    const stored = kept === undefined || kept.expiresAt <= now ? undefined : kept;
    const state = algorithm.open(parameters, stored?.state, now);
    const allowed = cost <= quota && algorithm.fits(parameters, state, cost);
    if (allowed) algorithm.take(parameters, state, cost);
    const reset = algorithm.resetAfter(parameters, state);
    if (allowed || state.migrated) {
      // One that has run out is not there any more, but its place is.
      if (kept !== undefined && reset > 0) {
        kept.state = algorithm.save(parameters, state);
        kept.expiresAt = now + reset + this.slackMs * 1000;
        this.keep(limit, kept);
      } else {
        this.store({
          limit,
          identity,
          key,
          stored,
          kept,
          state,
          block: undefined,
          cost,
          fits: allowed,
          delay: undefined,
        });
      }
    } else if (stored !== undefined) {
      this.prolong(stored, now + reset);
      this.entries.touch(stored);
    }
    return {
      allowed,
      limit: limit.name,
      quota,
      remaining: Math.max(0, algorithm.remaining(parameters, state)),
      retryAfterMs: allowed ? 0 : cost > quota ? Infinity : toMs(algorithm.retryAfter(parameters, state, cost)),
      resetAfterMs: toMs(reset),
      delayMs: 0,
      source: 'memory',
    };
  }

  private evaluate(entry: CheckEntry, now: number): View {
    const view = this.view(entry, now);
    view.cost = entry.cost;
    view.fits = view.block === undefined && fits(view);
    return view;
  }

  /** Charges what is allowed, and says what was decided. */
  private commit(view: View, allowed: boolean, { peek, blocks, refundable }: CheckMode): StoreDecision {
    const { limit, cost, state } = view;
    const { algorithm, parameters } = limit;
    const refusedFirst = !view.fits && blocks && limit.blockFor > 0 && view.block === undefined;
    if (refusedFirst) beginBlock(view);
    const charged = allowed && view.fits && !peek;
    // A delay and a place are those that it finds; what remains is what it leaves.
    const isPlaced = issuesTickets(algorithm);
    if (charged && !isPlaced) algorithm.take(parameters, state, cost);
    const decision = decisionOf(view);
    if (refundable && !peek) decision.chargedAt = state.now;
    if (charged && isPlaced) {
      algorithm.take(parameters, state, cost);
      decision.remaining = Math.max(0, algorithm.remaining(parameters, state));
      decision.resetAfterMs = toMs(algorithm.resetAfter(parameters, state));
    }
    if (charged || refusedFirst || (state.migrated && !peek)) this.store(view);
    else if (view.stored !== undefined) {
      if (!view.fits && !peek) this.prolong(view.stored, state.now + keepFor(view));
      this.entries.touch(view.stored);
    }
    return decision;
  }

  /** A counter that refused lives as long as its wait: it was stored under parameters by which it may be fresh sooner. */
  private prolong(entry: Entry, until: number): void {
    entry.expiresAt = Math.max(entry.expiresAt, until + this.slackMs * 1000);
  }

  private view({ limit, identity }: Counter, now: number): View {
    const key = keyOf(limit, identity);
    const kept = this.entries.get(key);
    // As on Redis, what has run out is gone, whether it was swept or not.
    const stored = kept === undefined || kept.expiresAt <= now ? undefined : kept;
    const state = open(limit, stored, now);
    let block = stored?.block;
    if (block !== undefined && block.until <= now) block = undefined;
    if (block !== undefined && block.until > now + block.duration) {
      // The clock was set back: the block ends no later than if it had just begun.
      block = { until: now + block.duration, duration: block.duration };
      state.migrated = true;
    }
    return { limit, identity, key, stored, kept, state, block, cost: 0, fits: false, delay: undefined };
  }

  private store(view: View): void {
    const { key, limit, state, block, stored, kept } = view;
    const saved = limit.algorithm.save(limit.parameters, state);
    const needed = keepFor(view);
    const lives = Math.max(needed, block === undefined ? 0 : block.until - state.now);
    if (lives <= 0) {
      this.forget(key);
      return;
    }
    const entry = kept ?? new Entry(key);
    entry.state = needed > 0 ? saved : undefined;
    entry.block = block;
    // What was carried over is not carried over again, whoever charges it meanwhile.
    const isUsed = needed > 0 && limit.algorithm.resetAfter(limit.parameters, state) > 0;
    entry.carried = isUsed ? (limit.carry ? limit.quota : stored?.carried) : undefined;
    entry.expiresAt = state.now + lives + this.slackMs * 1000;
    this.keep(limit, entry);
  }

  /** Keeps an entry as it is now. Blocks and leases are remembered when there is no room for all the rest. */
  private keep({ algorithm }: CompiledLimit, entry: Entry): void {
    const { key, state, block } = entry;
    const listed = state === undefined ? 0 : (algorithm.bytes?.(state) ?? 0);
    const bytes = ENTRY_BYTES + CHARACTER_BYTES * key.length + listed;
    this.entries.put(entry, bytes, block !== undefined || algorithm.holding !== undefined);
    this.timer ??= setInterval(() => this.sweep(), SWEEP_INTERVAL_MS).unref();
  }

  private forget(key: string): void {
    const entry = this.entries.get(key);
    if (entry !== undefined) this.entries.delete(entry);
  }

  /** Forgets a share of the counters that have run out; ends the timer when none is left. */
  private sweep(): void {
    const now = this.clock();
    for (let looked = Math.ceil(this.maxKeys / SWEEP_SHARE); looked > 0; looked--) {
      this.sweeping ??= this.entries.values();
      const { done, value } = this.sweeping.next();
      if (done === true) {
        this.sweeping = undefined;
        break;
      }
      if (value.expiresAt <= now) this.entries.delete(value);
    }
    if (this.entries.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }
}

/** The state as of now, with what was left of a smaller quota carried over. */
function open({ algorithm, parameters, carry, quota }: CompiledLimit, stored: Entry | undefined, now: number): State {
  const before = carry && stored?.state && (stored.carried ?? carry.quotaBefore);
  // Under a smaller quota nobody owes less: those who still decide by the larger one would find it as room.
  if (before === undefined || before >= quota || algorithm.holding) {
    return algorithm.open(parameters, stored?.state, now);
  }
  const old = algorithm.withQuota?.(parameters, before) ?? { ...parameters, quota: before };
  const state = algorithm.open(old, stored?.state, now);
  const left = algorithm.remaining(old, state);
  if (state.burst !== undefined) state.burst = Math.max(state.burst, Math.fround(quota));
  const isProportional = carry!.mode === 'proportional' && left >= 0;
  if (isProportional && algorithm.scaleUsed) {
    algorithm.scaleUsed(parameters, state, quota, before);
    state.migrated = true;
    return state;
  }
  const used = before - left;
  // Who owes owes as much as before.
  const more = left < 0 ? quota - before : isProportional ? inProportion(used, quota, before) - used : 0;
  if (more > 0) {
    algorithm.take(parameters, state, more);
    state.migrated = true;
  }
  return state;
}

/** How long the state has to be kept, in microseconds. */
function keepFor({ limit: { algorithm, parameters }, state }: View): number {
  return algorithm.keepFor?.(parameters, state) ?? algorithm.resetAfter(parameters, state);
}

function fits({ limit, state, cost }: View): boolean {
  return cost <= limit.quota && limit.algorithm.fits(limit.parameters, state, cost);
}

/** Whether units can be had within `longest`, and how long they have to be waited for; in microseconds. */
function reserve(view: View, longest: number): void {
  const { limit, state, block, cost } = view;
  const { algorithm, parameters } = limit;
  if (cost > limit.quota || block !== undefined) return;
  view.fits = fits(view);
  if (view.fits) {
    view.delay = algorithm.queue?.delay(parameters, state, cost) ?? 0;
    view.fits = view.delay <= longest;
  } else if (algorithm.reservation !== undefined) {
    view.delay = algorithm.retryAfter(parameters, state, cost);
    view.fits = view.delay <= longest && algorithm.reservation.canBorrow(parameters, state, cost);
  }
}

/**
 * Begins the block of a check that is refused. The counter begins anew when it ends: what was used is forgotten at once. What
 * is still to come stays: leases that are held, places in a queue, and what is owed beyond the quota. If the same check would
 * have to wait longer for that, the block lasts as long, so that nothing that is asked meanwhile lengthens its wait.
 */
function beginBlock(view: View): void {
  const { limit, state, cost } = view;
  const { algorithm, parameters, quota } = limit;
  if (!issuesTickets(algorithm)) {
    algorithm.give(parameters, state, Math.min(quota, quota - algorithm.remaining(parameters, state)));
  }
  const waits = cost <= quota && algorithm.holding === undefined && !algorithm.fits(parameters, state, cost);
  const wait = waits ? algorithm.retryAfter(parameters, state, cost) : 0;
  view.block = blockFor(Math.max(limit.blockFor, wait), state);
}

function blockFor(duration: number, { now }: State): Block | undefined {
  return duration > 0 ? { until: now + duration, duration } : undefined;
}

function decisionOf(view: View): StoreDecision {
  const { limit, cost, state, block } = view;
  const { algorithm, parameters, name, quota } = limit;
  const blocked = block === undefined ? 0 : block.until - state.now;
  const decision: StoreDecision = {
    allowed: view.fits,
    limit: name,
    quota,
    remaining: blocked > 0 ? 0 : Math.max(0, algorithm.remaining(parameters, state)),
    retryAfterMs: view.fits ? 0 : retryAfterMs(view, blocked),
    resetAfterMs: toMs(Math.max(algorithm.resetAfter(parameters, state), blocked)),
    delayMs: view.fits && algorithm.queue ? toMs(algorithm.queue.delay(parameters, state, cost)) : 0,
    source: 'memory',
  };
  const tickets = view.fits ? (algorithm.queue ?? algorithm.holding) : undefined;
  if (tickets !== undefined) decision.ticket = tickets.ticket(parameters, state, cost);
  return decision;
}

function retryAfterMs(view: View, blocked: number): number {
  const { limit, cost, state, delay } = view;
  if (delay !== undefined) return toMs(delay);
  if (cost > limit.quota) return Infinity;
  const needed = fits(view) ? 0 : limit.algorithm.retryAfter(limit.parameters, state, cost);
  return toMs(Math.max(needed, blocked));
}

/** Whether its counters are as most are: nothing is delayed, blocked, carried over, or kept for longer than it counts. */
function isPlain({ algorithm, blockFor, carry }: CompiledLimit): boolean {
  const isSimple = !issuesTickets(algorithm) && algorithm.keepFor === undefined;
  return isSimple && blockFor === 0 && carry === undefined;
}

function keyOf(limit: CompiledLimit, identity: string): string {
  return limit.id + boundedIdentity(identity);
}

/** Waits beyond this, 36,000 years, are all the same; the script does so too. */
const LONGEST_MS = 2 ** 50;

function toMs(micros: number): number {
  return Math.min(Math.ceil(micros / 1000), LONGEST_MS);
}
