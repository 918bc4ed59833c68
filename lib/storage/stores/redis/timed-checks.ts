import { RateLimitStoreError } from '../../../engine/errors/errors.js';
import type { CheckEntry } from '../../../engine/limits/counter.js';
import { withDeadline } from '../../redis/deadline.js';
import { allOrNothing, type Deadline, partOf } from '../all-or-nothing.js';
import type { Check, Refund, StoreDecision } from '../store.js';
import type { Batcher } from './batcher.js';
import { CheckJob } from './jobs.js';
import type { Slots } from './slots.js';

/** Makes checks with their own deadlines: those that have already waited, and those of several calls. */
export class TimedChecks {
  constructor(
    private readonly batcher: Pick<Batcher, 'enqueue'>,
    private readonly timeoutMs: number,
    private readonly refund: (refunds: readonly Refund[]) => Promise<void>,
    /** The slots of a Cluster. */
    private readonly slots: Slots | undefined,
  ) {}

  /** A check that has already waited gets the rest of its time. */
  decide(check: Check, since: number): Promise<StoreDecision[]> {
    return this.decideUntil(check, since + this.timeoutMs);
  }

  /** Decides one slot after another. If a later slot rejects, the earlier charges are refunded. */
  async decideAcrossSlots(check: Check, slots: CheckEntry[][]): Promise<StoreDecision[]> {
    const deadline: Deadline = { at: (check.since ?? performance.now()) + this.timeoutMs, timeoutMs: this.timeoutMs };
    const inTime = { decided: (part: Check) => this.decideUntil(part, deadline.at), refund: this.refund };
    const parts = slots.map((entries) => partOf(inTime, entries, { ...check, refundable: true }));
    const decisions = await allOrNothing(check.entries, parts, check.peek ?? false, deadline, check.upTo);
    return check.refundable === true ? decisions : decisions.map(({ chargedAt: _, ...decision }) => decision);
  }

  private async decideUntil(check: Check, deadline: number): Promise<StoreDecision[]> {
    const decisions = new Promise<StoreDecision[]>((decided, failed) => {
      this.batcher.enqueue(new CheckJob(check, { decided, failed }));
    });
    try {
      return await withDeadline(decisions, deadline - performance.now(), this.timeoutMs);
    } catch (error) {
      if (!(error instanceof RateLimitStoreError) || error.node !== undefined || this.slots === undefined) throw error;
      const counter = check.entries[0]!;
      throw this.slots.blame(this.slots.nodeOf(counter), error, counter);
    }
  }
}
