import { RateLimitStoreError } from '../../../engine/errors/errors.js';
import { replicaMessages } from '../../../engine/errors/messages/redis.js';
import { connect, isCluster } from '../../redis/client.js';
import type { Server } from '../../redis/connection.js';
import { notConnected } from '../../redis/connection-errors.js';
import { withDeadline } from '../../redis/deadline.js';
import type { Program } from './program.js';
import { ScriptCalls } from './script-calls.js';

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
