import { setTimeout as sleep } from 'node:timers/promises';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { chargeOf } from '../../storage/stores/store-decision.js';
import type { Refund, Store, StoreDecision } from '../../storage/stores/store.js';
import type { JobWait } from './job-claims.js';
import type { JobRequest } from './job-request.js';

/** The longest wait inside a worker, in milliseconds. */
const HOLD_MS = 250;

/** What a job took to start, to be given back if it does not start. */
export interface JobStart {
  readonly taken: readonly Refund[];
}

/**
 * Counts when jobs start, beside the counters that decide when they may: BullMQ queues a job whose time has come behind all
 * waiting jobs, and jobs that come late together would start at once. A job that is on time fits, since the reserved times obey
 * the limit. If its worker dies, a job keeps what it has taken.
 */
export class JobStarts {
  constructor(
    private readonly store: Store,
    private readonly keepMs: number,
  ) {}

  /**
   * Takes what a job needs to start, and waits for it. If the job is too late, returns the limit in question, and how long it has
   * no room.
   */
  async take({ id, reserved, hasStalled }: JobRequest, holdMs = HOLD_MS): Promise<JobStart | JobWait> {
    const taken: Refund[] = [];
    for (const entry of reserved) {
      if (entry.limit.shadow) continue;
      let answer = await this.reserve(entry, id, holdMs);
      if (answer.wasClaimed === true && answer.delayMs === 0 && !hasStalled) {
        // The reply that granted it was lost, and its time has passed: others may have had the same bad luck and start now.
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

  /** The refunds that end the claims of a job that has started. */
  ends({ id, reserved }: JobRequest): Refund[] {
    return reserved.filter(({ limit }) => !limit.shadow).map((entry) => claimOf(entry, id));
  }

  /** A queue that is full for a moment has room a moment later. */
  private async reserve(entry: CheckEntry, id: string, maxWaitMs: number): Promise<StoreDecision> {
    const claim = { id, keepMs: this.keepMs };
    for (;;) {
      const answer = await this.store.reserve({ ...entry, maxWaitMs, claim, ofStarts: true });
      if (answer.allowed || answer.retryAfterMs > maxWaitMs) return answer;
      await sleep(Math.ceil(answer.retryAfterMs));
    }
  }
}

/** Ends a claim. It gives back no units: those that could already be used are given back by their ticket. */
function claimOf({ limit, identity, cost: units }: CheckEntry, id: string): Refund {
  return { limit, identity, units, claim: { id, isSpent: true }, ofStarts: true };
}
