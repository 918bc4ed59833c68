import { createHash } from 'node:crypto';
import { isCluster, type RedisClient } from './client.js';
import { SCRIPT } from './script.generated.js';

const SHA = createHash('sha1').update(SCRIPT).digest('hex');

/** Runs the script by its hash. A server that does not know it yet, or no longer, is given it, once for all that wait. */
export class Script {
  private loading: Promise<void> | undefined;

  constructor(private readonly client: RedisClient) {}

  async run(keys: readonly string[], program: string): Promise<number[]> {
    try {
      return await this.call(keys, program);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      await this.load();
      return this.call(keys, program);
    }
  }

  /** Loads the script, on every master of a Cluster. Loaded scripts are not evicted, unlike those that EVAL brings. */
  load(): Promise<void> {
    const nodes = isCluster(this.client) ? this.client.nodes('master') : [this.client];
    this.loading ??= Promise.all(nodes.map((node) => node.script('LOAD', SCRIPT)))
      .then(() => undefined)
      .finally(() => (this.loading = undefined));
    return this.loading;
  }

  private call(keys: readonly string[], program: string): Promise<number[]> {
    return this.client.evalsha(SHA, keys.length, ...keys, program) as Promise<number[]>;
  }
}
