import { milliseconds } from '../../engine/options/values.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { CheckEntry, Counter } from '../../engine/limits/counter.js';
import { shownIdentity } from '../../engine/limits/hierarchy.js';
import type { HeldLease, StoreDecision } from '../../storage/stores/store.js';
import type { NotedKeys } from './noted-keys.js';

/** Whether units of a limit are held by leases that are kept in the store. */
export function leasesUnits({ algorithm, adapts }: CompiledLimit): boolean {
  return algorithm.leases !== undefined && !adapts;
}

/** How long such a lease lasts that nobody renews or releases, in milliseconds. */
function leaseMs({ options }: CompiledLimit): number {
  return milliseconds((options as { ttl?: unknown }).ttl) ?? 0;
}

/** Whether refusals of a limit block their keys. */
function blocksKeys({ blockFor, escalation }: CompiledLimit): boolean {
  return blockFor > 0 || escalation !== undefined;
}

/** Notes the keys of decisions that outlast their requests: leases and blocks. */
export class LastingDecisions {
  constructor(
    private readonly noted: NotedKeys | undefined,
    private readonly labelOf: (limit: CompiledLimit) => string | undefined,
  ) {}

  /** A limit whose units are leased was charged. */
  leased(label: string, entry: CheckEntry, { ticket }: StoreDecision): void {
    if (ticket !== undefined) this.noted?.held(label, shownIdentity(entry), leaseMs(entry.limit));
  }

  refused(label: string, entry: CheckEntry, { source, retryAfterMs }: StoreDecision): void {
    if (blocksKeys(entry.limit) && source !== 'list' && retryAfterMs < Infinity)
      this.noted?.blocked('limit', label, shownIdentity(entry), retryAfterMs);
  }

  /** A counter was blocked by a call for so long, or unblocked if that is 0. */
  blocked(counter: Counter, durationMs: number): void {
    const label = this.labelOf(counter.limit);
    if (label !== undefined) this.noted?.blocked('call', label, shownIdentity(counter), durationMs);
  }

  renewed(lease: HeldLease): void {
    const { limit } = lease;
    const label = leasesUnits(limit) ? this.labelOf(limit) : undefined;
    if (label !== undefined) this.noted?.held(label, shownIdentity(lease), leaseMs(limit));
  }
}
