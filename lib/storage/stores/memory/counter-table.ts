import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { RecencyList } from '../../../engine/util/recency-list.js';
import { Bans } from './bans.js';
import type { Block } from './block.js';
import { Credits } from './credits.js';
import { type Entry, keyOf, LimitCounters } from './limit-counters.js';

const SWEEP_INTERVAL_MS = 100;
/** A sweep examines one out of this many of the maximum number of counters, so that it never blocks the process. */
const SWEEP_SHARE = 100;

/** The average memory per counter. Most take less than half of it. */
const BYTES_A_KEY = 1000;
/** If the maximum number of counters is small, they may be large ones. */
const LEAST_BYTES = 16_000_000;
/** The bytes of a counter with an empty key, as measured, without the lists of its algorithm. */
const ENTRY_BYTES = 400;
/** Identities may contain other characters than ASCII. */
const CHARACTER_BYTES = 2;

/** The default maximum of bytes for this many counters. */
export function defaultMaxBytes(maxKeys: number): number {
  return Math.max(LEAST_BYTES, Math.min(maxKeys * BYTES_A_KEY, Number.MAX_SAFE_INTEGER));
}

/** The counters of a process, in limited memory, with one timer that removes expired ones. */
export class CounterTable {
  private readonly order: RecencyList<Entry>;
  /** By id of the limit, for limits with counters. */
  private readonly listed = new Map<string, LimitCounters>();
  /** The last known counters of a limit. If a limit is collected, so is its entry. */
  private readonly known = new WeakMap<CompiledLimit, LimitCounters>();
  /** Prepaid units, by counter. */
  readonly credits = new Credits();
  /** The blocks of counters that were evicted. */
  private readonly bans: Bans;
  private timer: NodeJS.Timeout | undefined;
  private sweeping: Iterator<Entry> | undefined;

  constructor(
    private readonly maxKeys: number,
    private readonly maxBytes: number,
    /** The time in whole microseconds. */
    private readonly clock: () => number,
  ) {
    this.order = new RecencyList(maxKeys, maxBytes, (entry) => this.evicted(entry));
    this.bans = new Bans(maxKeys, maxBytes);
  }

  get size(): number {
    return this.order.size;
  }

  get bytes(): number {
    return this.order.bytes + this.bans.bytes;
  }

  /** The number of limits that have counters. */
  get limits(): number {
    return this.listed.size;
  }

  /** The counters of a limit; limits with equal ids share them. */
  of(limit: CompiledLimit): LimitCounters {
    const known = this.known.get(limit);
    if (known?.isListed === true) return known;
    const counters = this.listed.get(limit.id) ?? known ?? new LimitCounters(limit.id);
    this.known.set(limit, counters);
    return counters;
  }

  /** The block of a counter that was evicted. */
  banOf(counters: LimitCounters, key: string): Block | undefined {
    return this.bans.size === 0 ? undefined : this.bans.of(counters.id, key);
  }

  /** Ends the ban of a counter that is stored with its own block. */
  endBan(counters: LimitCounters, key: string): void {
    if (this.bans.size === 0) return;
    this.bans.forget(counters.id, key);
    this.share();
  }

  /** Keeps an entry in its current state. Blocks, offences and leases are evicted last. */
  keep({ algorithm }: CompiledLimit, entry: Entry): void {
    const { key, state, block, estimates } = entry;
    const listed =
      (state === undefined ? 0 : (algorithm.bytes?.(state) ?? 0)) + (estimates === undefined ? 0 : estimates.bytes);
    const bytes = ENTRY_BYTES + CHARACTER_BYTES * key.length + listed;
    if (entry.segment === undefined) this.list(entry);
    this.order.put(entry, bytes, block !== undefined || algorithm.leases !== undefined);
    this.timer ??= setInterval(() => this.sweep(), SWEEP_INTERVAL_MS).unref();
  }

  /** Records that an entry was used without a change. */
  touch(entry: Entry): void {
    this.order.touch(entry);
  }

  delete(entry: Entry): void {
    if (this.order.remove(entry)) this.unlist(entry);
  }

  forget(limit: CompiledLimit, identity: string): void {
    const counters = this.of(limit);
    const key = keyOf(identity);
    const entry = counters.get(key);
    if (entry !== undefined) this.delete(entry);
    this.endBan(counters, key);
  }

  clear(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    this.sweeping = undefined;
    this.credits.clear();
    for (const counters of this.listed.values()) counters.clear();
    this.listed.clear();
    this.order.clear();
    this.bans.clear();
    this.share();
  }

  private list(entry: Entry): void {
    const { home } = entry;
    // Another limit with the same id may have been listed in the meantime.
    const counters = home.isListed ? home : (this.listed.get(home.id) ?? home);
    if (!counters.isListed) {
      counters.isListed = true;
      this.listed.set(counters.id, counters);
    }
    counters.add(entry);
  }

  private evicted(entry: Entry): void {
    if (entry.block !== undefined) {
      this.bans.keep(entry, this.clock());
      this.share();
    }
    this.unlist(entry);
  }

  /** Divides the memory between counters and bans. */
  private share(): void {
    this.order.maxBytes = this.maxBytes - this.bans.bytes;
  }

  private unlist(entry: Entry): void {
    const { home } = entry;
    home.delete(entry);
    if (home.size > 0) return;
    home.isListed = false;
    this.listed.delete(home.id);
  }

  /** Removes a share of the expired counters; stops the timer when none are left. */
  private sweep(): void {
    const now = this.clock();
    const looks = Math.ceil(this.maxKeys / SWEEP_SHARE);
    if (this.bans.size > 0) {
      this.bans.sweep(now, looks);
      this.share();
    }
    for (let looked = looks; looked > 0; looked--) {
      this.sweeping ??= this.entries();
      const { done, value } = this.sweeping.next();
      if (done === true) {
        this.sweeping = undefined;
        break;
      }
      if (value.expiresAt <= now) this.delete(value);
    }
    if (this.size > 0 || this.bans.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  /** All entries. Entries that are added or deleted during the iteration may be included. */
  private *entries(): IterableIterator<Entry> {
    for (const counters of this.listed.values()) yield* counters.values();
  }
}
