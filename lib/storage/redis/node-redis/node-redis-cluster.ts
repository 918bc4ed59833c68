import calculateSlot from 'cluster-key-slot';
import { notConnected, rememberError } from '../errors.js';
import type { Server, ServerCluster } from '../connection.js';
import { type Bridge, type Emitter, NodeRedisAdapter } from './adapter.js';
import { type FullClient, keyPrefixOf, NodeRedisServer } from './node-redis-server.js';
import type { NodeRedisCluster } from './types.js';

/** The properties of a node in a Cluster client. */
interface Node {
  readonly address: string;
  readonly host: string;
  readonly port: number;
  /** With `minimizeConnections`, absent until something is sent to the node. */
  readonly client?: FullClient;
}

interface Shard {
  readonly master: Node;
}

/** The part of a Cluster client that the library uses. */
export interface FullCluster extends NodeRedisCluster, Emitter {
  readonly _keyPrefix?: string;
  readonly masters: readonly Node[];
  readonly slots: readonly Shard[];
  /** Only in version 6. */
  readonly isReady?: boolean;
  readonly nodeByAddress: ReadonlyMap<string, Node>;
  /** Discovers the nodes, as the client does when one answers that it lacks a slot. There is no public method for this. */
  readonly _slots?: { rediscover?(startWith: FullClient): Promise<unknown> };
  connect(): Promise<unknown>;
  close(): Promise<unknown>;
  nodeClient(node: object): Promise<FullClient>;
  duplicate(overrides?: object): FullCluster;
}

/** How long to wait before discovering the nodes again, in milliseconds. */
const REDISCOVER_AFTER_MS = 200;

/** One node of a Cluster. */
class ClusterNode extends NodeRedisServer {
  constructor(
    private readonly cluster: FullCluster,
    private readonly node: Node,
    keyPrefix: string | undefined,
  ) {
    super(keyPrefix);
  }

  protected override get client(): FullClient | undefined {
    return this.node.client;
  }

  override get status(): string {
    return this.node.client === undefined ? 'wait' : super.status;
  }

  /** The address in the Cluster. The client may use another one because of `nodeAddressMap`. */
  override get options(): Server['options'] {
    const { host, port } = this.node;
    return this.keyPrefix === undefined ? { host, port } : { host, port, keyPrefix: this.keyPrefix };
  }

  override async connect(): Promise<void> {
    try {
      await this.cluster.nodeClient(this.node);
      this.emit('ready');
    } catch (error) {
      this.emit('error', error);
      throw error;
    }
  }

  /** Waits for a first connection that another command has begun. A check doesn't, since it would be charged late. */
  override async script(subcommand: 'LOAD', source: string): Promise<unknown> {
    await this.cluster.nodeClient(this.node);
    return super.script(subcommand, source);
  }

  protected override async send(args: string[]): Promise<unknown> {
    if (this.node.client !== undefined) return super.send(args);
    const client = await this.cluster.nodeClient(this.node);
    return client.sendCommand(args, this.commandOptions);
  }
}

/** A Cluster through a node-redis client. */
export class NodeRedisNodes extends NodeRedisAdapter implements ServerCluster {
  readonly isCluster = true;
  private readonly servers = new WeakMap<Node, ClusterNode>();
  private knownShards: readonly Shard[] | undefined;
  private addresses: (readonly string[])[] = [];
  private rediscoverAt = 0;
  /** Clients of nodes that have not answered a ping yet. */
  private readonly silent = new WeakSet<FullClient>();

  constructor(
    private readonly cluster: FullCluster,
    /** True for a copy that was created here. */
    private readonly isOwn = false,
  ) {
    super(keyPrefixOf(cluster));
  }

  get status(): string {
    const { isOpen, isReady, masters } = this.cluster;
    if (isOpen) return (isReady ?? masters.some(isUsable)) ? 'ready' : 'connecting';
    return this.isOwn ? 'wait' : 'end';
  }

  get options(): { readonly keyPrefix?: string } {
    return this.keyPrefix === undefined ? {} : { keyPrefix: this.keyPrefix };
  }

  /** The client creates a new list whenever it has discovered the nodes. */
  get slots(): readonly (readonly string[])[] {
    const { slots } = this.cluster;
    if (slots !== this.knownShards) {
      this.knownShards = slots;
      const masters = new Map<Shard, readonly string[]>();
      this.addresses = Array.from(slots, (shard) => {
        let address = masters.get(shard);
        if (address === undefined) masters.set(shard, (address = shard === undefined ? [] : [shard.master.address]));
        return address;
      });
    }
    return this.addresses;
  }

  nodes(role: 'all' | 'master'): Server[] {
    const { masters, nodeByAddress } = this.cluster;
    const nodes = role === 'master' ? masters : [...nodeByAddress.values()];
    return nodes.map((node) => this.serverOf(node));
  }

  /**
   * Discovers the nodes again, through the first one that answers. A frozen node seems to be connected, and node-redis would wait for it
   * forever, even if another node reports later that a slot has moved.
   */
  rediscover(failed: string): void {
    const now = performance.now();
    if (now < this.rediscoverAt) return;
    this.rediscoverAt = now + REDISCOVER_AFTER_MS;
    const { _slots: internals } = this.cluster;
    Promise.any(this.candidates(failed).map((node) => this.answering(node)))
      .then((client) => internals?.rediscover?.(client))
      .catch(() => undefined);
  }

  async connect(): Promise<void> {
    if (!this.isOwn) return this.notReady();
    try {
      await this.cluster.connect();
    } catch (error) {
      this.emit('error', error);
      throw error;
    }
  }

  quit(): Promise<unknown> {
    return this.cluster.close();
  }

  disconnect(): void {
    if (this.cluster.isOpen) this.cluster.destroy();
  }

  override copy(): NodeRedisNodes {
    const copy = this.cluster.duplicate({ commandOptions: undefined, clientSideCache: undefined });
    // The library's own connections report errors where they are used.
    copy.on('error', () => undefined);
    return new NodeRedisNodes(copy, true);
  }

  override abandonUnsent(): void {
    super.abandonUnsent();
    for (const node of this.cluster.nodeByAddress.values()) this.servers.get(node)?.abandonUnsent();
  }

  /** The client follows redirections until it finds the slot, but it would wait for a node that is down. */
  protected override sendTo(key: string | undefined, args: string[]): Promise<unknown> {
    if (key === undefined) return this.sendToAny(args);
    const node = this.cluster.slots[calculateSlot(key)]?.master;
    if (node !== undefined && !isUsable(node)) return Promise.reject(notConnected(this.serverOf(node)));
    return this.cluster.sendCommand(key, false, args, this.commandOptions);
  }

  protected override get emitter(): Emitter {
    return this.cluster;
  }

  protected override readonly bridges: readonly Bridge[] = [
    ['connect', () => this.emit('ready')],
    ['node-ready', () => this.status === 'ready' && this.emit('ready')],
    ['error', (error: Error) => this.emit('error', error)],
    ['node-error', (error: Error) => rememberError(this, error)],
    ['disconnect', () => this.emit('end')],
  ];

  /** The connected masters. If only the failed one is connected, as with `minimizeConnections`, all masters. */
  private candidates(failed: string): readonly Node[] {
    const { masters } = this.cluster;
    const connected = masters.filter(({ client }) => client?.isReady);
    return connected.some(({ address }) => address !== failed) ? connected : masters.filter(isUsable);
  }

  /** The client of a node that answers. Rejects if the node still has to answer an earlier call. */
  private async answering(node: Node): Promise<FullClient> {
    const client = node.client ?? (await this.cluster.nodeClient(node));
    if (this.silent.has(client)) return this.notReady();
    this.silent.add(client);
    try {
      await client.sendCommand(['PING'], this.commandOptions);
      return client;
    } finally {
      this.silent.delete(client);
    }
  }

  private sendToAny(args: string[]): Promise<unknown> {
    const ready = this.cluster.masters.flatMap(({ client }) => (client?.isReady ? [client] : []));
    const client = ready.find((each) => !this.silent.has(each)) ?? ready[0];
    return client === undefined ? this.notReady() : client.sendCommand(args, this.commandOptions);
  }

  private serverOf(node: Node): ClusterNode {
    let server = this.servers.get(node);
    if (server === undefined) this.servers.set(node, (server = new ClusterNode(this.cluster, node, this.keyPrefix)));
    return server;
  }
}

/** Returns true if a node is connected, or will be when something is sent to it. */
function isUsable({ client }: Node): boolean {
  return client === undefined || client.isReady;
}
