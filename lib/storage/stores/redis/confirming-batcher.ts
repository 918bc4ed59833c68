import { RateLimitStoreError } from '../../../engine/errors/errors.js';
import { replicaMessages } from '../../../engine/errors/messages/redis.js';
import { connect, duplicate, isCluster } from '../../redis/client.js';
import type { Connection, Server } from '../../redis/connection.js';
import { asStoreError, notConnected, serverOf } from '../../redis/errors.js';
import { withDeadline } from '../../redis/deadline.js';
import type { Program, TestClock } from './program.js';
import { ScriptCalls } from './script-calls.js';
import { messages } from '../../../engine/errors/messages/general.js';
import { Batcher } from './batcher.js';
import type { Job } from './jobs.js';
import { Slots } from './slots.js';

/**
 * Calls of the script on separate connections that support `WAIT`, which returns how many replicas have the writes. `WAIT` blocks a
 * connection, and only covers that connection's writes. So a call is made on the connection of the node that has the slot, and never on
 * another one.
 */
export class ConfirmingCalls extends ScriptCalls {
  private readonly ranOn = new WeakMap<Program, Server>();
  private readonly connecting = new Map<Server, Promise<void>>();

  /** The maximum wait for replicas. Together with the call it ends within the time of a check. */
  private get longestMs(): number {
    return Math.max(1, Math.floor(this.timeoutMs / 2));
  }

  override async run(program: Program, node?: string): Promise<unknown> {
    const server = await this.serverOf(node);
    const remember = (at: Server) => void this.ranOn.set(program, at);
    return this.script.runOn(server, program.keys, program.args(), this.timeoutMs, remember);
  }

  /** Returns how many replicas have the writes of a program. Rejects if the server doesn't report it. */
  async confirm(program: Program, wanted: number): Promise<number> {
    const { longestMs } = this;
    try {
      const server = this.ranOn.get(program)!;
      return await withDeadline(server.wait(wanted, longestMs), this.timeoutMs);
    } catch (cause) {
      throw asUnconfirmed(
        new RateLimitStoreError(replicaMessages.unasked(longestMs), { cause, code: 'SLUICE_NOT_REPLICATED' }),
      );
    }
  }

  /** The error if too few replicas have confirmed. */
  unconfirmed(confirmed: number, wanted: number): RateLimitStoreError {
    return asUnconfirmed(
      new RateLimitStoreError(replicaMessages.unconfirmed(confirmed, wanted, this.longestMs), {
        code: 'SLUICE_NOT_REPLICATED',
      }),
    );
  }

  /** All requests that wait for a connection share one event listener. */
  private connected(server: Server): Promise<void> {
    const known = this.connecting.get(server);
    if (known !== undefined) return known;
    const connecting = connect(server).finally(() => this.connecting.delete(server));
    this.connecting.set(server, connecting);
    return connecting;
  }

  private async serverOf(node: string | undefined): Promise<Server> {
    const { client } = this;
    if (!isCluster(client)) return client;
    const server = client.nodes('master').find(({ options: { host, port } }) => `${host}:${port}` === node);
    if (server === undefined) throw notConnected(client);
    if (server.status !== 'ready') await this.connected(server);
    return server;
  }
}

/** Marks an error that no node is responsible for. */
export function asUnconfirmed(error: RateLimitStoreError): RateLimitStoreError {
  error.isUnconfirmed = true;
  return error;
}

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
