import calculateSlot from 'cluster-key-slot';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Server, ServerCluster, Stream } from './connection.js';
import { isErrorReply, messageOf } from './errors.js';

/** The start of a node's reply about a slot that is moving to another node, or that no node serves. */
const MOVING = /^(?:ASK |TRYAGAIN |CLUSTERDOWN Hash slot)/;

/**
 * The slots of a Cluster that are moving. They explain why calls on their keys may be slow or fail while the node answers others.
 */
class MovingSlots {
  /** The last reply of a node about each slot, and when it came, on the process's clock. */
  private readonly sayings = new Map<number, { readonly reason: string; readonly at: number }>();

  /** Records an error reply if it reports a moving slot. Returns true if it does. */
  note(slot: number, message: string): boolean {
    if (!MOVING.test(message)) return false;
    this.sayings.set(slot, { reason: message, at: performance.now() });
    return true;
  }

  /** The latest reply about a slot within the last `withinMs` milliseconds. */
  reasonOf(slot: number, withinMs: number): string | undefined {
    const saying = this.sayings.get(slot);
    if (saying === undefined) return undefined;
    if (performance.now() - saying.at <= withinMs) return saying.reason;
    this.sayings.delete(slot);
    return undefined;
  }
}

/** The start of a node's reply to a command that it did not run, because it no longer has the slot, or doesn't have it yet. */
const NOT_RUN = /^(?:MOVED|ASK|TRYAGAIN|CLUSTERDOWN) /;
const CLOSED = 'Connection is closed.';
/** A node's reply about keys that it lacks while their slot moves: the destination node has them, or accepts new ones. */
const ASK = /^ASK \d+ (\S+)/;
/** ioredis's error after too many redirections. It contains the last one. */
const REDIRECTED = /^Too many Cluster redirections.*\bASK \d+ (\S+)/;
/** Some of the keys have moved and some have not. A moment later, all may have. */
const TRY_AGAIN = 'TRYAGAIN ';
const TRY_AGAIN_AFTER_MS = 20;

/** A call on several keys of one slot. */
export interface SlotCall {
  readonly keys: readonly string[];
  /** When its caller gives up, on the process's clock. */
  readonly deadline: number;
  send(connection: Server): Promise<unknown>;
  /** Sends through the Cluster client, which follows redirections until it finds the slot. */
  sendByClient(): Promise<unknown>;
  /** Fixes what the node reported as missing. Resolves to true to send the call again. */
  mend(error: unknown, connection: Server): Promise<boolean>;
}

/**
 * The connections to the nodes of a Cluster. Calling a script on one of them is cheaper than through the Cluster client, and the calls of
 * one turn are sent in one write per node. Calls that a node did not run are left to the client, which can find the slot.
 */
export class NodeConnections {
  private readonly nodes = new Map<string, Server>();
  /** The streams whose writes are held back while a function sends. */
  private held: Stream[] | undefined;
  readonly moving = new MovingSlots();

  constructor(private readonly client: ServerCluster) {}

  /** The connection of a node, if it is ready. */
  of(name: string): Server | undefined {
    const known = this.nodes.get(name);
    if (known?.status === 'ready') return known;
    this.nodes.clear();
    const prefix = this.client.options.keyPrefix ?? '';
    for (const node of this.client.nodes('all')) {
      const { host, port, keyPrefix = '' } = node.options;
      // With another prefix, the node's connection would use other keys than the client.
      if (node.status === 'ready' && keyPrefix === prefix) this.nodes.set(`${host}:${port}`, node);
    }
    return this.nodes.get(name);
  }

  /** The connection of a node for writing. Everything written during `inOneWrite` is sent in one write. */
  toWrite(name: string): Server | undefined {
    const node = this.of(name);
    if (node !== undefined) this.hold(node.stream);
    return node;
  }

  /** Deletes keys of one slot together; one by one while the slot moves, since each node then lacks some of them. */
  async delete(name: string, keys: readonly string[]): Promise<number> {
    try {
      return Number(await (this.of(name) ?? this.client).del(...keys));
    } catch (error) {
      if (!this.isForClient(error)) throw (await this.whyRedirected(error)) ?? error;
      const counts = await Promise.all(keys.map((key) => this.deleteOne(key)));
      return counts.reduce((sum, count) => sum + count, 0);
    }
  }

  private async deleteOne(key: string): Promise<number> {
    try {
      return Number(await this.client.del(key));
    } catch (error) {
      throw (await this.whyRedirected(error)) ?? error;
    }
  }

  /**
   * The reason why a node that a redirection led to sends calls back: this Redis user has no permission for ASKING. ioredis ignores that
   * error and reports only that there were too many redirections. `undefined` for any other reason.
   */
  async whyRedirected(error: unknown): Promise<unknown> {
    const address = REDIRECTED.exec(messageOf(error))?.[1];
    const node = address === undefined ? undefined : this.withAddress(address);
    try {
      await node?.asking();
      return undefined;
    } catch (refusal) {
      return isErrorReply(refusal) ? refusal : undefined;
    }
  }

  /** Sends everything that `send` writes to a node in one write. */
  inOneWrite(send: () => void): void {
    const streams: Stream[] = [];
    this.held = streams;
    try {
      send();
    } finally {
      this.held = undefined;
      for (const stream of streams) stream.uncork?.();
    }
  }

  /**
   * Makes a call that a node did not run, until its caller gives up. The Cluster client would go on after that, since it has no deadlines.
   * A single key never gets TRYAGAIN, so its call is left to the client, and so is a call on a slot that has moved.
   */
  async follow(first: unknown, call: SlotCall): Promise<unknown> {
    const slot = calculateSlot(call.keys[0] ?? '');
    for (let error = first; ;) {
      const message = messageOf(error);
      const isMoving = this.moving.note(slot, message);
      if (!isMoving || call.keys.length < 2) return call.sendByClient();
      const address = ASK.exec(message)?.[1];
      if (address === undefined) await sleep(TRY_AGAIN_AFTER_MS);
      if (performance.now() > call.deadline) throw error;
      const node = this.nextNode(message, address, slot);
      if (node === undefined) return call.sendByClient();
      try {
        return await (address === undefined ? call.send(node) : sendAsking(node, call));
      } catch (next) {
        if (await call.mend(next, node)) continue;
        if (!NOT_RUN.test(messageOf(next))) throw next;
        error = next;
      }
    }
  }

  private nextNode(message: string, address: string | undefined, slot: number): Server | undefined {
    if (address !== undefined) return this.withAddress(address);
    return message.startsWith(TRY_AGAIN) ? this.of(this.client.slots[slot]?.[0] ?? '') : undefined;
  }

  /** The connection of a node. It doesn't have to be ready, since it queues commands. */
  private withAddress(address: string): Server | undefined {
    const prefix = this.client.options.keyPrefix ?? '';
    return this.client
      .nodes('all')
      .find(
        ({ status, options: { host, port, keyPrefix = '' } }) =>
          `${host}:${port}` === address && status !== 'end' && keyPrefix === prefix,
      );
  }

  /** Returns true if the client would retry after this error of a node instead of failing. */
  isForClient(error: unknown): boolean {
    const message = messageOf(error);
    return NOT_RUN.test(message) || (message === CLOSED && (this.client.options.retryDelayOnFailover ?? 0) > 0);
  }

  /** A connection without a stream sends all commands of a turn in one write anyway. */
  private hold(stream: Stream | undefined): void {
    if (stream === undefined || this.held === undefined || this.held.includes(stream)) return;
    stream.cork?.();
    this.held.push(stream);
  }
}

/** With ASKING, the node accepts keys of a slot that it doesn't have yet, for the next command only. */
async function sendAsking(node: Server, call: SlotCall): Promise<unknown> {
  const [, reply] = await Promise.all([node.asking(), call.send(node)]);
  return reply;
}
