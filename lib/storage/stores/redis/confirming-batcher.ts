import { RateLimitStoreError } from '../../../engine/errors/errors.js';
import { replicaMessages } from '../../../engine/errors/messages/redis.js';
import { connect, isCluster } from '../../redis/client.js';
import type { Connection, Server } from '../../redis/connection.js';
import { asStoreError, notConnected, serverOf } from '../../redis/errors.js';
import { storeTimeout, withDeadline } from '../../redis/deadline.js';
import type { Program } from './program.js';
import { ScriptCalls } from './script-calls.js';
import { Batcher } from './batcher.js';
import type { Job } from './jobs.js';
import type { Slots } from './slots.js';

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
      throw notReplicated(replicaMessages.unasked(longestMs), { cause });
    }
  }

  /** The error if too few replicas have confirmed. */
  unconfirmed(confirmed: number, wanted: number): RateLimitStoreError {
    return notReplicated(replicaMessages.unconfirmed(confirmed, wanted, this.longestMs));
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

/** The error of a job whose replicas have not confirmed. It is marked, since no node is responsible for it. */
function notReplicated(message: string, options?: ErrorOptions): RateLimitStoreError {
  const error = new RateLimitStoreError(message, { ...options, code: 'SLUICE_NOT_REPLICATED' });
  error.isUnconfirmed = true;
  return error;
}

/**
 * Sends jobs that replicas have to confirm on a separate connection, created on first use, so that other requests don't wait for them.
 */
export class ConfirmingBatcher {
  private readonly batcher: Batcher;
  private readonly timeoutMs: number;
  private connecting: Promise<void> | undefined;

  constructor(
    private readonly client: Connection,
    calls: ConfirmingCalls,
    slots: Slots | undefined,
  ) {
    this.batcher = new Batcher(calls, slots, calls);
    this.timeoutMs = calls.timeoutMs;
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
    const awaited = this.batcher.awaited(job);
    if (awaited === 'server') return storeTimeout(timeoutMs);
    return notReplicated(
      awaited === 'replicas' ? replicaMessages.unasked(timeoutMs) : replicaMessages.notItsTurn(timeoutMs),
    );
  }

  /** Pending requests are answered first. */
  async close(): Promise<void> {
    await this.batcher.drain();
    this.client.disconnect();
  }
}
