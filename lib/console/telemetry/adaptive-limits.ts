import type { CheckEntry } from '../../engine/limits/counter.js';
import type { LookAtAdaptive } from '../../storage/telemetry/adaptive-metrics.js';
import type { AdaptiveNow } from '../api.js';
import { type Bucket, noLimitCounts } from './bucket.js';

/** The adaptive limits that are in use, and their state. */
export class AdaptiveLimits {
  /** The last request to each, by label. */
  private readonly last = new Map<string, CheckEntry>();

  asked(label: string, entry: CheckEntry): void {
    this.last.set(label, entry);
  }

  /** The current state of each, by label; `undefined` if there are none. */
  now(look: LookAtAdaptive): Record<string, AdaptiveNow> | undefined {
    if (this.last.size === 0) return undefined;
    const seen = [...this.last].flatMap(([label, entry]) => {
      const { quota: limit, inFlight = 0 } = look(entry) ?? { quota: NaN };
      return limit >= 0 ? [[label, { limit, inFlight }]] : [];
    });
    return Object.fromEntries(seen) as Record<string, AdaptiveNow>;
  }

  /** Notes in a bucket what they admit and have in flight, if they are in use. */
  addTo({ limits }: Bucket, look: LookAtAdaptive): void {
    for (const [label, { limit, inFlight }] of Object.entries(this.now(look) ?? {})) {
      const counts = limits.get(label) ?? noLimitCounts();
      if (inFlight === 0 && !limits.has(label)) continue;
      limits.set(label, { ...counts, looks: 1, admits: limit, inFlight });
    }
  }
}
