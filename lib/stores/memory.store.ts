import type { State, WindowCount } from '../algorithms/algorithm.js';
import type { CompiledLimit } from '../algorithms/limit.js';
import { RateLimitArgumentError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import { boundedIdentity } from './identity.js';
import type {
  Charge,
  Check,
  CheckEntry,
  Counter,
  HeldLease,
  Refund,
  ReserveEntry,
  Store,
  StoreDecision,
} from './store.js';

/** How a `MemoryStore` counts. */
export interface MemoryStoreOptions {
  /**
   * How many counters are kept at most; the least recently used goes first.
   * @default 100_000
   */
  maxKeys?: number;
  /**
   * The time in whole microseconds since the epoch.
   * @default the system's clock
   */
  clock?: () => number;
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
  readonly state: State;
  block: Block | undefined;
  /** What a check asks for, and whether it fits. */
  cost: number;
  fits: boolean;
  /** How long units that are reserved have to be waited for. */
  delay: number | undefined;
}

interface Entry {
  /** Nothing if it equals a fresh one. */
  state: State | undefined;
  block: Block | undefined;
  /** The quota that its units were carried over to. */
  carried: number | undefined;
  /** When the state equals a fresh one and may be forgotten, in microseconds. */
  expiresAt: number;
}

/** What a check does besides deciding: whether it only looks, blocks whom it refuses, and says when it charged. */
interface How {
  readonly peek: boolean;
  readonly blocks: boolean;
  readonly refundable: boolean;
}

const CONSUME: How = { peek: false, blocks: true, refundable: false };
const CONSUME_REFUNDABLE: How = { peek: false, blocks: true, refundable: true };
const PEEK: How = { peek: true, blocks: false, refundable: false };
const RESERVE: How = { peek: false, blocks: false, refundable: true };

const SWEEP_INTERVAL_MS = 1000;
/** A sweep looks at one in so many of the counters that may be kept, so that it never holds the process up. */
const SWEEP_SHARE = 10;

/** Counts in this process: the same algorithms as on Redis, bounded, with one timer for all counters. */
export class MemoryStore implements Store {
  /** The least recently used first. */
  private readonly entries = new Map<string, Entry>();
  private readonly maxKeys: number;
  /** @internal The time in whole microseconds. */
  readonly clock: () => number;
  private readonly slackMs: number;
  private timer: NodeJS.Timeout | undefined;
  private sweeping: MapIterator<[string, Entry]> | undefined;

  /**
   * Counts nothing yet, and has no timer until it does.
   *
   * @param options how it counts
   */
  constructor({ maxKeys = 100_000, clock = () => Date.now() * 1000, slackMs = 0 }: MemoryStoreOptions = {}) {
    this.maxKeys = maxKeys;
    this.clock = clock;
    this.slackMs = slackMs;
  }

  /** How many counters are kept. */
  get size(): number {
    return this.entries.size;
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
    const decision = this.settle(view, view.fits, RESERVE);
    if (view.fits) {
      decision.delayMs = toMs(view.delay ?? 0);
      const place = algorithm.covered?.(parameters, view.state);
      if (place !== undefined) decision.place = place;
    }
    return Promise.resolve(decision);
  }

  refund(refunds: readonly Refund[]): Promise<void> {
    const now = this.clock();
    for (const refund of refunds) {
      const view = this.view(refund, now);
      const { algorithm, parameters } = refund.limit;
      algorithm.give(parameters, view.state, refund.units, refund.place, refund.at);
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
    const held = algorithm.renew?.(parameters, view.state, lease.units, lease.place) ?? false;
    if (held) this.store(view);
    return Promise.resolve(held);
  }

  reset(counters: readonly Counter[]): Promise<void> {
    for (const counter of counters) this.entries.delete(keyOf(counter.limit, counter.identity));
    return Promise.resolve();
  }

  history(counter: Counter): Promise<WindowCount[]> {
    const { algorithm, parameters } = counter.limit;
    if (algorithm.history === undefined) {
      return Promise.reject(new RateLimitArgumentError(messages.noHistory(counter.limit.name)));
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
      const view = this.judge(only, now);
      return [this.settle(view, view.fits || only.limit.shadow, how)];
    }
    const views = entries.map((entry) => this.judge(entry, now));
    const allowed = views.every((view) => view.fits || view.limit.shadow);
    return views.map((view) => this.settle(view, allowed, how));
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
    if (allowed || state.moved) {
      // One that has run out is not there any more, but its place is.
      if (kept !== undefined && reset > 0) {
        kept.state = algorithm.save(parameters, state);
        kept.expiresAt = now + reset + this.slackMs * 1000;
        this.touch(key, kept);
      } else {
        this.store({ limit, identity, key, stored, state, block: undefined, cost, fits: allowed, delay: undefined });
      }
    } else if (stored !== undefined) this.touch(key, stored);
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

  private judge(entry: CheckEntry, now: number): View {
    const view = this.view(entry, now);
    view.cost = entry.cost;
    view.fits = view.block === undefined && fits(view);
    return view;
  }

  /** Charges what is allowed, and says what was decided. */
  private settle(view: View, allowed: boolean, { peek, blocks, refundable }: How): StoreDecision {
    const { limit, cost, state } = view;
    const { algorithm, parameters } = limit;
    const refusedFirst = !view.fits && blocks && limit.blockFor > 0 && view.block === undefined;
    if (refusedFirst) beginBlock(view);
    const charged = allowed && view.fits && !peek;
    // A delay and a place are those that it finds; what remains is what it leaves.
    const isPlaced = algorithm.delay !== undefined || algorithm.place !== undefined;
    if (charged && !isPlaced) algorithm.take(parameters, state, cost);
    const decision = decisionOf(view);
    if (refundable && !peek) decision.at = state.now;
    if (charged && isPlaced) {
      algorithm.take(parameters, state, cost);
      decision.remaining = Math.max(0, algorithm.remaining(parameters, state));
      decision.resetAfterMs = toMs(algorithm.resetAfter(parameters, state));
    }
    if (charged || refusedFirst || (state.moved && !peek)) this.store(view);
    else if (view.stored !== undefined) this.touch(view.key, view.stored);
    return decision;
  }

  private view({ limit, identity }: Counter, now: number): View {
    const key = keyOf(limit, identity);
    const stored = this.find(key, now);
    const state = open(limit, stored, now);
    let block = stored?.block;
    if (block !== undefined && block.until <= now) block = undefined;
    if (block !== undefined && block.until > now + block.duration) {
      // The clock was set back: the block ends no later than if it had just begun.
      block = { until: now + block.duration, duration: block.duration };
      state.moved = true;
    }
    return { limit, identity, key, stored, state, block, cost: 0, fits: false, delay: undefined };
  }

  private store({ key, limit, state, block, stored }: View): void {
    const { algorithm, parameters } = limit;
    const saved = algorithm.save(parameters, state);
    const needed = algorithm.keepFor?.(parameters, state) ?? algorithm.resetAfter(parameters, state);
    const keepFor = Math.max(needed, block === undefined ? 0 : block.until - state.now);
    if (keepFor <= 0) {
      this.entries.delete(key);
      return;
    }
    const entry = stored ?? { state: undefined, block: undefined, carried: undefined, expiresAt: 0 };
    entry.state = needed > 0 ? saved : undefined;
    entry.block = block;
    entry.carried = limit.carry && limit.quota;
    entry.expiresAt = state.now + keepFor + this.slackMs * 1000;
    this.touch(key, entry, stored !== undefined);
  }

  /** The entry of a key, if it has not run out: as on Redis, what has run out is gone, whether it was swept or not. */
  private find(key: string, now: number): Entry | undefined {
    const entry = this.entries.get(key);
    return entry === undefined || entry.expiresAt <= now ? undefined : entry;
  }

  /** Makes an entry the most recently used. While there is room for as many again, nobody has to know which one that is. */
  private touch(key: string, entry: Entry, isKept = true): void {
    if (isKept && this.entries.size * 2 <= this.maxKeys) return;
    this.entries.delete(key);
    this.entries.set(key, entry);
    if (this.entries.size > this.maxKeys) {
      for (const oldest of this.entries.keys()) {
        this.entries.delete(oldest);
        break;
      }
    }
    this.timer ??= setInterval(() => this.sweep(), SWEEP_INTERVAL_MS).unref();
  }

  /** Forgets a share of the counters that have run out; ends the timer when none is left. */
  private sweep(): void {
    const now = this.clock();
    for (let looked = Math.ceil(this.maxKeys / SWEEP_SHARE); looked > 0; looked--) {
      this.sweeping ??= this.entries.entries();
      const { done, value } = this.sweeping.next();
      if (done === true) {
        this.sweeping = undefined;
        break;
      }
      if (value[1].expiresAt <= now) this.entries.delete(value[0]);
    }
    if (this.entries.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }
}

/** The state as of now, with what was left under another quota carried over. */
function open({ algorithm, parameters, carry, quota }: CompiledLimit, stored: Entry | undefined, now: number): State {
  const before = carry && stored?.state && (stored.carried ?? carry.quotaBefore);
  if (before === undefined || before === quota || algorithm.renew)
    return algorithm.open(parameters, stored?.state, now);
  const old = algorithm.withQuota?.(parameters, before) ?? { ...parameters, quota: before };
  const state = algorithm.open(old, stored!.state, now);
  let left = algorithm.remaining(old, state);
  // Who owes owes as much as before.
  if (left >= 0) left = carry!.mode === 'proportional' ? Math.floor((left * quota) / before) : left + quota - before;
  const taken = algorithm.remaining(parameters, state) - Math.min(left, quota);
  if (taken > 0) algorithm.take(parameters, state, taken);
  if (taken < 0) algorithm.give(parameters, state, -taken);
  state.moved ||= taken !== 0;
  return state;
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
    view.delay = algorithm.delay?.(parameters, state, cost) ?? 0;
    view.fits = view.delay <= longest;
  } else if (algorithm.covered !== undefined) {
    view.delay = algorithm.retryAfter(parameters, state, cost);
    view.fits = view.delay <= longest && algorithm.owable!(parameters, state, cost);
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
  if (algorithm.delay === undefined) {
    algorithm.give(parameters, state, Math.min(quota, quota - algorithm.remaining(parameters, state)));
  }
  const waits = cost <= quota && algorithm.renew === undefined && !algorithm.fits(parameters, state, cost);
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
    delayMs: view.fits && algorithm.delay ? toMs(algorithm.delay(parameters, state, cost)) : 0,
    source: 'memory',
  };
  if (view.fits && algorithm.place) decision.place = algorithm.place(parameters, state, cost);
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
  return algorithm.delay === undefined && algorithm.keepFor === undefined && blockFor === 0 && carry === undefined;
}

function keyOf(limit: CompiledLimit, identity: string): string {
  return limit.id + boundedIdentity(identity);
}

/** Waits beyond this, 36,000 years, are all the same; the script does so too. */
const LONGEST_MS = 2 ** 50;

function toMs(micros: number): number {
  return Math.min(Math.ceil(micros / 1000), LONGEST_MS);
}
