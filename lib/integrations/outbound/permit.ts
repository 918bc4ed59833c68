import type { CheckEntry } from '../../engine/limits/counter.js';
import { Lease } from '../../app/limiter/lease.js';
import { settle } from '../../app/limiter/settlement.js';
import type { Turn } from '../../app/waiting/turn.js';
import type { WaitQueues } from '../../app/waiting/wait-queues.js';
import { chargeOf, heldOf } from '../../storage/stores/store-decision.js';
import type { HeldLease, Store } from '../../storage/stores/store.js';

/** The stores that permits return their units to. */
export interface PermitStores {
  readonly store: Store;
  readonly waits: WaitQueues;
}

/** The units that a call took from its limits. With a permit, the call may be sent. */
export class Permit {
  private readonly held: readonly HeldLease[];
  private readonly lease: Lease;

  constructor(
    private readonly turn: Turn,
    private readonly stores: PermitStores,
  ) {
    this.held = turn.entries.flatMap((entry, index) => heldOf(entry, turn.decisions[index]!) ?? []);
    this.lease = new Lease(this.held, stores.store, stores.waits).keepAlive();
  }

  /** The checks of the call. */
  get entries(): readonly CheckEntry[] {
    return this.turn.entries;
  }

  /** True if it holds units, which must be released. */
  get holds(): boolean {
    return this.held.length > 0;
  }

  /** Releases the units that it holds, once. */
  release(): Promise<void> {
    return this.lease.release();
  }

  /** Charges or refunds the difference to the actual cost of a call; held units are not changed. */
  async settle(entry: CheckEntry, actual: number): Promise<void> {
    const { store, waits } = this.stores;
    const { limit, cost } = entry;
    const decision = this.turn.decisions[this.entries.indexOf(entry)]!;
    if (!decision.allowed || limit.off || limit.algorithm.leases !== undefined) return;
    await settle(store, chargeOf(entry, decision), actual);
    if (actual < cost) waits.wake(entry);
  }
}
