import type { State, WindowCount } from '../algorithms/algorithm.js';
import { RateLimitArgumentError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import type { Check, CheckEntry, Counter, Refund, Store, StoreDecision } from './store.js';

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

interface Entry {
  readonly state: State;
  /** When the state equals a fresh one and may be forgotten, in microseconds. */
  readonly expiresAt: number;
}

const SWEEP_INTERVAL_MS = 1000;
/** A sweep looks at one in so many of the counters that may be kept, so that it never holds the process up. */
const SWEEP_SHARE = 10;

/** Counts in this process: the same algorithms as on Redis, bounded, with one timer for all counters. */
export class MemoryStore implements Store {
  /** The least recently used first. */
  private readonly entries = new Map<string, Entry>();
  private readonly maxKeys: number;
  private readonly clock: () => number;
  private readonly slackMs: number;
  private timer: NodeJS.Timeout | undefined;
  private sweeping: MapIterator<[string, Entry]> | undefined;

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
    return checks.map((check) => this.decide(check, now));
  }

  refund(refunds: readonly Refund[]): Promise<void> {
    const now = this.clock();
    for (const { limit, identity, units, place } of refunds) {
      const { algorithm, parameters } = limit;
      const key = keyOf({ limit, identity });
      const stored = this.find(key, now);
      if (stored === undefined) continue;
      const state = algorithm.open(parameters, stored.state, now);
      algorithm.give(parameters, state, units, place);
      this.store(key, { limit, identity }, state);
    }
    return Promise.resolve();
  }

  reset(counters: readonly Counter[]): Promise<void> {
    for (const counter of counters) this.entries.delete(keyOf(counter));
    return Promise.resolve();
  }

  history(counter: Counter): Promise<WindowCount[]> {
    const { algorithm, parameters } = counter.limit;
    if (algorithm.history === undefined) {
      return Promise.reject(new RateLimitArgumentError(messages.noHistory(counter.limit.name)));
    }
    const now = this.clock();
    const state = algorithm.open(parameters, this.find(keyOf(counter), now)?.state, now);
    return Promise.resolve(algorithm.history(parameters, state));
  }

  close(): Promise<void> {
    clearInterval(this.timer);
    this.timer = undefined;
    this.entries.clear();
    return Promise.resolve();
  }

  /** Looks at all limits first, then charges all or none. */
  private decide({ entries, peek = false }: Check, now: number): StoreDecision[] {
    const views = entries.map((entry) => this.view(entry, now));
    const allowed = views.every(({ fits, limit }) => fits || limit.shadow);
    return views.map((view) => {
      const { algorithm, parameters } = view.limit;
      const charged = allowed && view.fits && !peek;
      const decision = this.decision(view);
      if (charged) {
        algorithm.take(parameters, view.state, view.cost);
        decision.remaining = algorithm.remaining(parameters, view.state);
        decision.resetAfterMs = toMs(algorithm.resetAfter(parameters, view.state));
      }
      if (charged || (view.state.moved && !peek)) this.store(view.key, view, view.state);
      else if (view.stored !== undefined) this.touch(view.key, view.stored);
      return decision;
    });
  }

  private view(entry: CheckEntry, now: number) {
    const { limit, cost, identity } = entry;
    const { algorithm, parameters } = limit;
    const key = keyOf(entry);
    const stored = this.find(key, now);
    const state = algorithm.open(parameters, stored?.state, now);
    const fits = cost <= parameters.quota && algorithm.fits(parameters, state, cost);
    return { limit, identity, cost, key, stored, state, fits };
  }

  private decision({ limit, cost, state, fits }: ReturnType<MemoryStore['view']>): StoreDecision {
    const { algorithm, parameters, name } = limit;
    const retryAfterMs = fits
      ? 0
      : cost > parameters.quota
        ? Infinity
        : toMs(algorithm.retryAfter(parameters, state, cost));
    const decision: StoreDecision = {
      allowed: fits,
      limit: name,
      quota: parameters.quota,
      remaining: algorithm.remaining(parameters, state),
      retryAfterMs,
      resetAfterMs: toMs(algorithm.resetAfter(parameters, state)),
      delayMs: fits && algorithm.delay ? toMs(algorithm.delay(parameters, state, cost)) : 0,
      source: 'memory',
    };
    if (fits && algorithm.place) decision.place = algorithm.place(parameters, state, cost);
    return decision;
  }

  private store(key: string, { limit }: Counter, state: State): void {
    const { algorithm, parameters } = limit;
    const saved = algorithm.save(parameters, state);
    const keepFor = algorithm.keepFor?.(parameters, state) ?? algorithm.resetAfter(parameters, state);
    if (keepFor <= 0) this.entries.delete(key);
    else this.touch(key, { state: saved, expiresAt: state.now + keepFor + this.slackMs * 1000 });
  }

  /** The entry of a key, if it has not run out: as on Redis, what has run out is gone, whether it was swept or not. */
  private find(key: string, now: number): Entry | undefined {
    const entry = this.entries.get(key);
    return entry === undefined || entry.expiresAt <= now ? undefined : entry;
  }

  /** Makes an entry the most recently used. */
  private touch(key: string, entry: Entry): void {
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

function keyOf({ limit, identity }: Counter): string {
  return `${limit.id}\n${identity}`;
}

function toMs(micros: number): number {
  return Math.ceil(micros / 1000);
}
