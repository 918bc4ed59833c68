import { BoundedMap, Kept } from '../../../engine/util/bounded-maps.js';

/** Maximum number of claims to keep, and the bytes that they may take; the least recently used is evicted first. */
const MAX_CLAIMS = 100_000;
const MAX_BYTES = 50_000_000;
const CLAIM_BYTES = 200;

/** Claimed units; times are in microseconds of the store's clock. */
class ClaimedUnits extends Kept {
  /** True if they were last requested at a time when they could already be used. */
  isUsed = false;

  constructor(
    key: string,
    readonly units: number,
    readonly ticket: number | undefined,
    readonly chargedAt: number,
    readonly usableAt: number,
    public keptUntil: number,
  ) {
    super(key);
  }
}

/** The units that a claim returns. */
export type GivenBack = Pick<ClaimedUnits, 'units' | 'ticket' | 'chargedAt'>;

/** Reservations that a claim makes only once, no matter how often it is repeated. Does the same as `lua/driver/claim.lua`. */
export class Claims {
  private readonly claims = new BoundedMap<ClaimedUnits>(MAX_CLAIMS, MAX_BYTES);

  /** Microseconds until claimed units can be used; `undefined` without a claim. */
  recall(key: string, now: number, keep: number): number | undefined {
    const claim = this.find(key, now);
    if (claim === undefined) return undefined;
    // If the clock was set back, they can be used no later than if they had just been claimed.
    const delay = Math.max(0, Math.min(claim.usableAt, now + claim.usableAt - claim.chargedAt) - now);
    if (delay === 0 && !claim.isUsed) {
      claim.isUsed = true;
      claim.keptUntil = now + keep;
    }
    return delay;
  }

  add(key: string, { units, ticket, chargedAt }: GivenBack, delay: number, keep: number): void {
    const usableAt = chargedAt + delay;
    const claim = new ClaimedUnits(key, units, ticket, chargedAt, usableAt, usableAt + keep);
    claim.isUsed = delay === 0;
    const before = this.claims.get(key);
    if (before !== undefined) this.claims.delete(before);
    this.claims.put(claim, CLAIM_BYTES + 2 * key.length, false);
  }

  /** Ends a claim. Returns the units to refund, if requested; units that could already be used are not refunded. */
  release(key: string, now: number, givesBack: boolean): GivenBack | undefined {
    const claim = this.find(key, now);
    if (claim === undefined) return undefined;
    this.claims.delete(claim);
    return givesBack && !claim.isUsed ? claim : undefined;
  }

  clear(): void {
    this.claims.clear();
  }

  private find(key: string, now: number): ClaimedUnits | undefined {
    const claim = this.claims.get(key);
    if (claim === undefined || now < claim.keptUntil) return claim;
    this.claims.delete(claim);
    return undefined;
  }
}
