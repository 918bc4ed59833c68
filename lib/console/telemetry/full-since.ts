import type { AdaptiveNow } from '../api.js';

/** A limit that has room again is full no longer only after this time, in milliseconds: units come and go. */
const ROOM_MS = 5000;

/** Notes since when adaptive limits are full. */
export class FullSince {
  private readonly full = new Map<string, { since: number; seenAt: number }>();

  /** Adds to each limit since when it is full. */
  of(now: Record<string, AdaptiveNow> | undefined, at: number): Record<string, AdaptiveNow> | undefined {
    if (now === undefined) return undefined;
    const seen = Object.entries(now).map(([label, { limit, inFlight }]) => {
      const known = this.full.get(label);
      if (inFlight >= limit && inFlight > 0) this.full.set(label, { since: known?.since ?? at, seenAt: at });
      else if (known !== undefined && at - known.seenAt > ROOM_MS) this.full.delete(label);
      const since = this.full.get(label)?.since;
      return [label, { limit, inFlight, ...(since !== undefined && { fullSince: since }) }] as const;
    });
    return Object.fromEntries(seen);
  }
}
