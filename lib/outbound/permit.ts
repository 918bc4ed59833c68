import type { CheckEntry } from '../limits/counter.js';
import { Lease } from '../limiter/lease.js';
import { settle } from '../limiter/settlement.js';
import type { WaitQueues } from '../limiter/wait-queues.js';
import { chargeOf, heldOf } from '../stores/store-decision.js';
import type { Store } from '../stores/store.js';
import type { TurnQueues } from './turns/turn-queues.js';
import type { TakenTurn } from './turns/waiting-call.js';

/** Where permits give back what they took. */
export interface PermitStores {
  readonly store: Store;
  readonly waits: WaitQueues;
  readonly turns: TurnQueues;
}

/** What a call took of its limits: it may be sent. */
export class Permit {
  /** What it holds, with the counters. */
  private readonly leases: { readonly lease: Lease; readonly entry: CheckEntry }[] = [];
  private released: Promise<void> | undefined;

  constructor(
    private readonly turn: TakenTurn,
    private readonly stores: PermitStores,
  ) {
    for (const [index, entry] of turn.entries.entries()) {
      const held = heldOf(entry, turn.decisions[index]!);
      if (held === undefined) continue;
      const lease = new Lease(held, stores.store, stores.waits).keepAlive();
      this.leases.push({ lease, entry });
    }
  }

  /** What it asked of its limits. */
  get entries(): readonly CheckEntry[] {
    return this.turn.entries;
  }

  /** Whether it holds units, which have to be released. */
  get holds(): boolean {
    return this.leases.length > 0;
  }

  /** Frees the units that it holds; once. */
  release(): Promise<void> {
    return (this.released ??= this.free());
  }

  /** Charges or gives back the difference to what a call cost in the end; not of held units. */
  async settle(entry: CheckEntry, actual: number): Promise<void> {
    const { store, turns } = this.stores;
    const { limit, cost } = entry;
    const decision = this.turn.decisions[this.entries.indexOf(entry)]!;
    if (!decision.allowed || limit.off || limit.algorithm.holding !== undefined) return;
    await settle(store, chargeOf(entry, decision), actual);
    if (actual < cost) turns.wake(entry);
  }

  private async free(): Promise<void> {
    await Promise.all(this.leases.map(({ lease }) => lease.release()));
    for (const { entry } of this.leases) this.stores.turns.wake(entry);
  }
}
