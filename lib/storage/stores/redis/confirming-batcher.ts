import { RateLimitStoreError } from '../../../engine/errors/errors.js';
import { messages } from '../../../engine/errors/messages/general.js';
import { replicaMessages } from '../../../engine/errors/messages/redis.js';
import { connect, duplicate, isCluster } from '../../redis/client.js';
import type { Connection } from '../../redis/connection.js';
import { asStoreError, serverOf } from '../../redis/store-error.js';
import { Batcher } from './batcher.js';
import { asUnconfirmed, ConfirmingCalls } from './confirming-calls.js';
import type { Job } from './jobs.js';
import type { TestClock } from './program.js';
import { Slots } from './slots.js';

/** How a store calls the script. */
interface CallOptions {
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly clock: TestClock | undefined;
  readonly script: string | undefined;
}

/**
 * Sends jobs that replicas have to confirm on a separate connection, created on first use, so that other requests don't wait for them.
 */
export class ConfirmingBatcher {
  private readonly client: Connection;
  private readonly batcher: Batcher;
  private readonly timeoutMs: number;
  private connecting: Promise<void> | undefined;

  constructor(client: Connection, { prefix, timeoutMs, clock, script }: CallOptions) {
    this.client = duplicate(client, timeoutMs);
    this.timeoutMs = timeoutMs;
    const calls = new ConfirmingCalls(this.client, prefix, timeoutMs, clock, script);
    const { client: own } = this;
    const slots = isCluster(own) ? new Slots(own, prefix, (slot) => calls.whyMoving(slot)) : undefined;
    this.batcher = new Batcher(calls, slots, calls);
  }

  /** Sends a job once there is a connection. The time of a check includes that wait. */
  enqueue(job: Job): void {
    const { timeoutMs } = this;
    setTimeout(() => job.isOver || job.reject(this.late(job)), timeoutMs).unref();
    if (this.client.status === 'ready') {
      this.batcher.enqueue(job);
      return;
    }
    this.connecting ??= connect(this.client).finally(() => (this.connecting = undefined));
    this.connecting.then(
      () => job.isOver || this.batcher.enqueue(job),
      (error: unknown) => job.reject(asStoreError(error, serverOf(this.client))),
    );
  }

  /** The error of a job that was not answered in time. It counts as a server failure only if the job waits for the server. */
  private late(job: Job): RateLimitStoreError {
    const { timeoutMs } = this;
    switch (this.batcher.awaited(job)) {
      case 'replicas':
        return asUnconfirmed(
          new RateLimitStoreError(replicaMessages.unasked(timeoutMs), { code: 'SLUICE_NOT_REPLICATED' }),
        );
      case 'turn':
        return asUnconfirmed(
          new RateLimitStoreError(replicaMessages.notItsTurn(timeoutMs), { code: 'SLUICE_NOT_REPLICATED' }),
        );
      default:
        return new RateLimitStoreError(messages.storeTimeout(timeoutMs), { code: 'SLUICE_STORE_TIMEOUT' });
    }
  }

  /** Pending requests are answered first. */
  async close(): Promise<void> {
    await this.batcher.drain();
    this.client.disconnect();
  }
}
