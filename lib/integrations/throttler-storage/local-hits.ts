import { BoundedMap, Kept } from '../../engine/util/bounded-maps.js';
import { recordOf, type HitTerms, type ThrottlerRecord } from './throttler-record.js';

/** The bytes of a key without hits, and of each hit. */
const KEY_BYTES = 300;
const HIT_BYTES = 8;
const BYTES_A_KEY = 1000;

/** The hits of a key. `lua/throttler-hits.lua` is the twin on Redis. */
class Hits extends Kept {
  /** When each hit expires, in ascending order. */
  private expiries: number[] = [];
  private windowEnd = 0;
  /** 0: no block. */
  private blockEnd = 0;

  get count(): number {
    return this.expiries.length;
  }

  /** True while a block lasts; blocked keys are evicted last. */
  isBlockedAt(now: number): boolean {
    return this.blockEnd > now;
  }

  increment({ ttl, limit, block }: HitTerms, now: number): ThrottlerRecord {
    this.forgetUntil(now);
    if (this.windowEnd <= now) this.windowEnd = now + ttl;
    const windowMs = this.windowEnd - now;
    if (block <= 0) {
      const { count } = this;
      if (count >= limit) return recordOf(count + 1, windowMs, true, (this.expiries[0] ?? this.windowEnd) - now);
      this.add(now + ttl);
      return recordOf(count + 1, windowMs, false, 0);
    }
    if (this.blockEnd > 0 && this.blockEnd <= now) {
      this.expiries = [];
      this.blockEnd = 0;
    }
    if (this.blockEnd === 0) {
      this.add(now + ttl);
      if (this.count > limit) this.blockEnd = now + block;
    }
    const isBlocked = this.blockEnd > 0;
    return recordOf(this.count, windowMs, isBlocked, isBlocked ? this.blockEnd - now : 0);
  }

  private forgetUntil(now: number): void {
    const { expiries } = this;
    if (expiries.length === 0 || expiries[0]! > now) return;
    const first = expiries.findIndex((expiry) => expiry > now);
    if (first === -1) this.expiries = [];
    else expiries.splice(0, first);
  }

  private add(expiry: number): void {
    const { expiries } = this;
    let at = expiries.length;
    while (at > 0 && expiries[at - 1]! > expiry) at--;
    if (at === expiries.length) expiries.push(expiry);
    else expiries.splice(at, 0, expiry);
  }
}

/** Counts hits in process while Redis fails. Keys that weren't hit for the longest time are evicted first. */
export class LocalHits {
  private readonly kept: BoundedMap<Hits>;

  constructor(maxKeys: number) {
    this.kept = new BoundedMap(maxKeys, Math.max(16_000_000, maxKeys * BYTES_A_KEY));
  }

  /** Counts a hit at a time in milliseconds. */
  increment(key: string, terms: HitTerms, now: number): ThrottlerRecord {
    const hits = this.kept.get(key) ?? new Hits(key);
    const record = hits.increment(terms, now);
    this.kept.put(hits, KEY_BYTES + 2 * key.length + HIT_BYTES * hits.count, hits.isBlockedAt(now));
    return record;
  }

  clear(): void {
    this.kept.clear();
  }
}
