import { setTimeout as sleep } from 'node:timers/promises';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { chargeOf } from '../../storage/stores/store-decision.js';
import type { Refund, Store, StoreDecision } from '../../storage/stores/store.js';
import type { JobWait } from './job-claims.js';
import type { JobRequest } from './job-request.js';

/** The longest wait inside a worker, in milliseconds. */
const HOLD_MS = 250;

/** The units that a job took in order to start. They are returned if it doesn't start. */
export interface JobStart {
  readonly taken: readonly Refund[];
}

/**
 * Counts when jobs start, in separate counters from those that decide when they may start. BullMQ puts a job whose time has come behind all
 * waiting jobs, so late jobs would otherwise start all at once. A job that is on time always fits, because the reserved times obey the
 * limit. If its worker dies, the job keeps its units.
 */
export class JobStarts {
  constructor(
    private readonly store: Store,
    private readonly keepMs: number,
  ) {}

  /**
   * Takes the units that a job needs to start, and waits for them. If the job is too late, returns the limit that has no room and the wait
   * for it.
   */
  async take({ id, reserved, hasStalled }: JobRequest, holdMs = HOLD_MS): Promise<JobStart | JobWait> {
    const taken: Refund[] = [];
    for (const entry of reserved) {
      if (entry.limit.shadow) continue;
      let answer = await this.reserve(entry, id, holdMs);
      if (answer.wasClaimed === true && answer.delayMs === 0 && !hasStalled) {
        // The reply that granted it was lost, and its time has passed. Other jobs may be in the same situation and would start now.
        await this.store.refund([claimOf(entry, id)]);
        answer = await this.reserve(entry, id, holdMs);
      }
      if (!answer.allowed) {
        await this.giveBack({ taken });
        return { entry, ms: answer.retryAfterMs };
      }
      if (answer.delayMs > 0) await sleep(Math.ceil(answer.delayMs));
      taken.push(claimOf(entry, id));
      if (answer.wasClaimed !== true) taken.push({ ...chargeOf(entry, answer), ofStarts: true });
    }
    return { taken };
  }

  async giveBack({ taken }: JobStart): Promise<void> {
    if (taken.length > 0) await this.store.refund(taken);
  }

  /** The refunds that end the claims of a job after its start. */
  ends({ id, reserved }: JobRequest): Refund[] {
    return reserved.filter(({ limit }) => !limit.shadow).map((entry) => claimOf(entry, id));
  }

  /** A queue that is full right now usually has room a moment later. */
  private async reserve(entry: CheckEntry, id: string, maxWaitMs: number): Promise<StoreDecision> {
    const claim = { id, keepMs: this.keepMs };
    for (;;) {
      const answer = await this.store.reserve({ ...entry, maxWaitMs, claim, ofStarts: true });
      if (answer.allowed || answer.retryAfterMs > maxWaitMs) return answer;
      await sleep(Math.ceil(answer.retryAfterMs));
    }
  }
}

/** Ends a claim. This returns no units: a ticket returns units that could already be used. */
function claimOf({ limit, identity, cost: units }: CheckEntry, id: string): Refund {
  return { limit, identity, units, claim: { id, isSpent: true }, ofStarts: true };
}
