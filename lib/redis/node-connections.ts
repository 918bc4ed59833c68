/** @ts-ignore ioredis need not be installed; where it is not, these types are `any`. */
import type { Cluster, Redis } from 'ioredis';

/** Begins what a node answers to a command that it did not run, since it has the slot no longer, or not yet. */
const NOT_RUN = /^(?:MOVED|ASK|TRYAGAIN|CLUSTERDOWN) /;
const CLOSED = 'Connection is closed.';

/**
 * The connections of a Cluster's nodes. A script that is called on one of them costs less than through the Cluster's client, and
 * the calls of one turn leave in one write a node. What a node did not run is for the client, which knows how to find the slot.
 */
export class NodeConnections {
  private readonly nodes = new Map<string, Redis>();
  /** The streams that hold back what is written, while there is a function that sends. */
  private held: Redis['stream'][] | undefined;

  constructor(private readonly client: Cluster) {}

  /** The connection of a node, if it is ready. */
  of(name: string): Redis | undefined {
    const known = this.nodes.get(name);
    if (known?.status === 'ready') return known;
    this.nodes.clear();
    const prefix = this.client.options.keyPrefix ?? '';
    for (const node of this.client.nodes('all')) {
      const { host, port, keyPrefix = '' } = node.options;
      // Of another prefix, the node would count under other keys than the client.
      if (node.status === 'ready' && keyPrefix === prefix) this.nodes.set(`${host}:${port}`, node);
    }
    return this.nodes.get(name);
  }

  /** Calls a loaded script on a node's own connection, or through the client while that is not ready. */
  evalsha(name: string, sha: string, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const node = this.of(name);
    if (node === undefined) return this.client.evalsha(sha, keys.length, ...keys, ...args);
    this.hold(node.stream);
    return node.evalsha(sha, keys.length, ...keys, ...args);
  }

  /** What is sent to a node meanwhile leaves in one write. */
  inOneWrite(send: () => void): void {
    const streams: Redis['stream'][] = [];
    this.held = streams;
    try {
      send();
    } finally {
      this.held = undefined;
      for (const stream of streams) stream.uncork();
    }
  }

  /** Whether the client would not fail with an error of a node, but ask again. */
  isForClient(error: unknown): boolean {
    const message = String((error as { message?: unknown } | null)?.message);
    return NOT_RUN.test(message) || (message === CLOSED && (this.client.options.retryDelayOnFailover ?? 0) > 0);
  }

  private hold(stream: Redis['stream']): void {
    if (this.held === undefined || this.held.includes(stream)) return;
    stream.cork();
    this.held.push(stream);
  }
}
