import { createHash } from 'node:crypto';
import { isCluster } from './client.js';
import type { Connection, Server } from './connection.js';
import { NodeConnections } from './node-connections.js';

/** Errors may come from another realm, as in a test runner. */
function isNoScript(error: unknown): boolean {
  return String((error as { message?: unknown } | null)?.message).startsWith('NOSCRIPT');
}

/** The hashes of the scripts of this process: hashing a long script takes a while, and each store has one. */
const hashes = new Map<string, string>();

function shaOf(source: string): string {
  let sha = hashes.get(source);
  if (sha === undefined) hashes.set(source, (sha = createHash('sha1').update(source).digest('hex')));
  return sha;
}

/** Runs a script by its hash. Loads it into a server that lacks it, once for all waiting runs. */
export class Script {
  private readonly sha: string;
  private readonly loading = new Map<Server, Promise<void>>();
  private readonly nodes: NodeConnections | undefined;

  constructor(
    private readonly client: Connection,
    private readonly source: string,
  ) {
    this.sha = shaOf(source);
    this.nodes = isCluster(client) ? new NodeConnections(client) : undefined;
  }

  /**
   * Runs the script; directly on a node of a Cluster if its name is given. If the script had to be loaded, or another node asked,
   * it is not run after its deadline: the caller has given up.
   */
  run(keys: readonly string[], args: readonly string[], timeoutMs: number, node?: string): Promise<unknown> {
    const deadline = performance.now() + timeoutMs;
    return this.call(keys, args, node).catch(async (error: unknown) => {
      const isMissing = isNoScript(error);
      if (isMissing) await this.load(node);
      else if (node === undefined || this.nodes?.isForClient(error) !== true) throw error;
      if (performance.now() > deadline) throw error;
      return isMissing ? this.call(keys, args) : this.follow(error, keys, args, deadline);
    });
  }

  /** Deletes keys of one slot, which a node of a Cluster serves. */
  async delete(keys: readonly string[], node: string | undefined): Promise<void> {
    if (this.nodes === undefined) await this.client.del(...keys);
    else await this.nodes.delete(node ?? '', keys);
  }

  /** Why calls on a slot may fail: a node reported it as moving in the last `withinMs` milliseconds. */
  whyMoving(slot: number, withinMs: number): string | undefined {
    return this.nodes?.moving.reasonOf(slot, withinMs);
  }

  private follow(error: unknown, keys: readonly string[], args: readonly string[], deadline: number): Promise<unknown> {
    return this.nodes!.follow(error, {
      keys,
      deadline,
      send: (node) => node.evalsha(this.sha, keys.length, ...keys, ...args),
      sendByClient: () => this.run(keys, args, deadline - performance.now()),
      mend: async (failure, node) => {
        if (!isNoScript(failure)) return false;
        await this.loadInto(node);
        return true;
      },
    });
  }

  /**
   * Runs the script on the connection of one server, or of the one that has the slot by now. Calls back with each that it uses.
   */
  async runOn(
    server: Server,
    keys: readonly string[],
    args: readonly string[],
    timeoutMs: number,
    onServer: (server: Server) => void,
  ): Promise<unknown> {
    const deadline = performance.now() + timeoutMs;
    const send = (node: Server) => {
      onServer(node);
      return node.evalsha(this.sha, keys.length, ...keys, ...args);
    };
    const mend = async (failure: unknown, node: Server) => {
      if (!isNoScript(failure)) return false;
      await this.loadInto(node);
      return true;
    };
    try {
      return await send(server);
    } catch (error) {
      if (performance.now() > deadline) throw error;
      if (await mend(error, server)) return send(server);
      if (this.nodes?.isForClient(error) !== true) throw error;
      // It is unknown where the client would send it.
      return this.nodes.follow(error, { keys, deadline, send, mend, sendByClient: () => Promise.reject(error) });
    }
  }

  /**
   * Loads the script into one node of a Cluster, or into every master. Loaded scripts are not evicted, unlike those cached by
   * EVAL.
   */
  async load(name?: string): Promise<void> {
    const node = name === undefined ? undefined : this.nodes?.of(name);
    if (node !== undefined) return this.loadInto(node);
    const servers = isCluster(this.client) ? this.client.nodes('master') : [this.client];
    await Promise.all(servers.map((server) => this.loadInto(server)));
  }

  /** Sends the runs of one turn in one write per node; each is called before `send` returns. */
  inOneWrite(send: () => void): void {
    if (this.nodes === undefined) send();
    else this.nodes.inOneWrite(send);
  }

  private loadInto(server: Server): Promise<void> {
    const known = this.loading.get(server);
    if (known !== undefined) return known;
    const loading = server
      .script('LOAD', this.source)
      .then(() => undefined)
      .finally(() => this.loading.delete(server));
    this.loading.set(server, loading);
    return loading;
  }

  private call(keys: readonly string[], args: readonly string[], node?: string): Promise<unknown> {
    if (node !== undefined && this.nodes !== undefined) return this.nodes.evalsha(node, this.sha, keys, args);
    return this.client.evalsha(this.sha, keys.length, ...keys, ...args);
  }
}
