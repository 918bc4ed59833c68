import { createHash } from 'node:crypto';
import { isCluster, type RedisClient } from './client.js';

/** Errors may come from another realm, as in a test runner. */
function isNoScript(error: unknown): boolean {
  return String((error as { message?: unknown } | null)?.message).startsWith('NOSCRIPT');
}

/** Runs a script by its hash. Loads it into a server that lacks it, once for all runs that wait. */
export class Script {
  private readonly sha: string;
  private loading: Promise<void> | undefined;

  constructor(
    private readonly client: RedisClient,
    private readonly source: string,
  ) {
    this.sha = createHash('sha1').update(source).digest('hex');
  }

  /** Runs it. A script that had to be loaded is not run once the time is over: its caller has given up. */
  run(keys: readonly string[], args: readonly string[], timeoutMs: number): Promise<unknown> {
    const deadline = performance.now() + timeoutMs;
    return this.call(keys, args).catch(async (error: unknown) => {
      if (!isNoScript(error)) throw error;
      await this.load();
      if (performance.now() > deadline) throw error;
      return this.call(keys, args);
    });
  }

  /** Loads the script, on every master of a Cluster. Loaded scripts are not evicted, unlike those that EVAL brings. */
  load(): Promise<void> {
    const nodes = isCluster(this.client) ? this.client.nodes('master') : [this.client];
    this.loading ??= Promise.all(nodes.map((node) => node.script('LOAD', this.source)))
      .then(() => undefined)
      .finally(() => (this.loading = undefined));
    return this.loading;
  }

  private call(keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.client.evalsha(this.sha, keys.length, ...keys, ...args);
  }
}
