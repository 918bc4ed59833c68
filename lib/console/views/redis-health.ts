import type { RedisInfo } from '../api.js';
import { withDeadline } from '../../storage/redis/deadline.js';
import { isCluster } from '../../storage/redis/client.js';
import type { ConsoleRedis } from '../telemetry/console-redis.js';
import type { Recorder } from '../telemetry/recorder.js';

/** The minimum interval between two calls to a server. */
const LOOK_EVERY_MS = 5000;
/** The keys in each sample, and the number of recent samples that the estimate is based on. */
const DRAWN = 32;
const KEPT = 512;

/** The part of a connection to one node that is used. */
interface Node {
  readonly options: { keyPrefix?: string; host?: string; port?: number };
  pipeline(commands: unknown[][]): { exec(): Promise<[Error | null, unknown][] | null> };
}

/** The health data of one node, or of all nodes together. */
type NodeHealth = Pick<RedisInfo, 'version' | 'usedMemory' | 'maxMemory' | 'ourKeysBytes'>;

/** Checks the health of Redis while somebody views it. */
export class RedisHealth {
  private known: NodeHealth = { version: null, usedMemory: null, maxMemory: null, ourKeysBytes: null };
  private lookedAt = -Infinity;
  private looking: Promise<void> | undefined;
  /** The bytes of sampled keys by node; 0 for keys that belong to others. */
  private readonly drawn = new Map<string, number[]>();

  constructor(
    private readonly redis: ConsoleRedis,
    private readonly recorder: Recorder,
  ) {}

  /** Never rejects. */
  async look(): Promise<RedisInfo> {
    const { redis, recorder } = this;
    if (performance.now() - this.lookedAt > LOOK_EVERY_MS) {
      this.looking ??= this.ask().finally(() => (this.looking = undefined));
      await this.looking;
    }
    const up = redis.client.status === 'ready' && recorder.problem === undefined;
    return {
      up,
      mode: isCluster(redis.client) ? 'cluster' : 'standalone',
      ...this.known,
      latencyMs: redis.latencyMs === null ? null : Number(redis.latencyMs.toPrecision(3)),
    };
  }

  private async ask(): Promise<void> {
    const { client, timeoutMs } = this.redis;
    if (client.status !== 'ready') return;
    this.lookedAt = performance.now();
    const nodes = (isCluster(client) ? client.nodes('master') : [client]) as Node[];
    try {
      const health = await withDeadline(Promise.all(nodes.map((node) => this.askNode(node))), 2 * timeoutMs);
      this.known = {
        version: health[0]?.version ?? null,
        usedMemory: sum(health.map(({ usedMemory }) => usedMemory)),
        maxMemory: sum(health.map(({ maxMemory }) => maxMemory)),
        ourKeysBytes: sum(health.map(({ ourKeysBytes }) => ourKeysBytes)),
      };
    } catch {
      // The last known values are still approximately right.
    }
  }

  private async askNode(node: Node): Promise<NodeHealth> {
    const draws = Array.from({ length: DRAWN }, () => ['randomkey']);
    const [server, memory, size, ...keys] = await replies(node, [
      ['info', 'server'],
      ['info', 'memory'],
      ['dbsize'],
      ...draws,
    ]);
    const info = `${String(server)}\n${String(memory)}`;
    const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
    const program = field('valkey_version') === undefined ? 'redis' : 'valkey';
    const version = field(`${program}_version`);
    const [used, max] = [Number(field('used_memory') ?? NaN), Number(field('maxmemory') ?? NaN)];
    return {
      version: version === undefined ? null : `${program} ${version}`,
      usedMemory: Number.isFinite(used) ? used : null,
      maxMemory: max > 0 ? max : null,
      ourKeysBytes: await this.estimate(node, size, keys),
    };
  }

  /** The number of keys times the mean size of the sampled ones. Keys that belong to others count as 0. */
  private async estimate(node: Node, size: unknown, keys: readonly unknown[]): Promise<number | null> {
    if (typeof size !== 'number') return null;
    if (size === 0) return 0;
    const { keyPrefix = '', host, port } = node.options;
    const begins = `${keyPrefix}${this.redis.prefix}:`;
    const drawn = keys.filter((key) => typeof key === 'string');
    const ours = drawn.filter((key) => key.startsWith(begins));
    const sizes = await replies(
      node,
      ours.map((key) => ['memory', 'usage', key.slice(keyPrefix.length)]),
    );
    if (drawn.length === 0 || sizes.some((each) => each === undefined)) return null;
    const name = `${host}:${port}`;
    const others = Array.from({ length: drawn.length - ours.length }, () => 0);
    // A key that has expired in the meantime has no size.
    const all = [...(this.drawn.get(name) ?? []), ...others, ...sizes.map((each) => Number(each ?? 0))].slice(-KEPT);
    this.drawn.set(name, all);
    return Math.round((size * all.reduce((total, bytes) => total + bytes, 0)) / all.length);
  }
}

/** The replies of a node; `undefined` for commands that it rejects. */
async function replies(node: Node, commands: unknown[][]): Promise<unknown[]> {
  if (commands.length === 0) return [];
  const results = (await node.pipeline(commands).exec()) ?? [];
  return results.map(([error, reply]) => (error === null ? reply : undefined));
}

function sum(values: readonly (number | null)[]): number | null {
  return values.reduce((total, value) => (total === null || value === null ? null : total + value), 0);
}
