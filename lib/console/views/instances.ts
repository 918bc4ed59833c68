import type { InstanceInfo } from '../api.js';
import type { ConsoleClock } from '../telemetry/console-clock.js';
import type { Command, ConsoleRedis } from '../telemetry/console-redis.js';
import { readInstance } from '../telemetry/instance.js';
import { MOST_INSTANCES, type Recorder } from '../telemetry/recorder.js';

/** The values to request in one call: between calls, requests of the app get their turn. */
const VALUES_PER_CALL = 1000;

/** The data of another instance. */
export interface ReadInstance {
  readonly id: string;
  /** What it publishes about itself, if it still runs. */
  readonly info: InstanceInfo | undefined;
  /** The reply to the command for it. */
  readonly reply: unknown;
}

/** Reads what the instances of the app have stored. */
export class Instances {
  constructor(
    private readonly recorder: Recorder,
    private readonly clock: ConsoleClock,
    private readonly redis: ConsoleRedis | undefined,
  ) {}

  /** This instance, as it is listed. */
  get self(): InstanceInfo {
    return { ...this.recorder.published, self: true };
  }

  /**
   * Reads all other instances that reported within this many milliseconds, each with the reply to one command for it, which may
   * have this many values; a few at a time. Rejects with `RateLimitStoreError`.
   */
  async *others(
    withinMs: number,
    values: number,
    command: (id: string, redis: ConsoleRedis) => Command,
  ): AsyncGenerator<ReadInstance> {
    const { redis } = this;
    if (redis === undefined) return;
    const since = this.clock.now() - withinMs;
    const [found] = await redis.run([['zrevrangebyscore', redis.keys.seen, '+inf', since, 'LIMIT', 0, MOST_INSTANCES]]);
    const ids = (found as string[]).filter((id) => id !== this.recorder.self.id);
    const perCall = Math.ceil(VALUES_PER_CALL / values);
    for (let at = 0; at < ids.length; at += perCall) {
      const some = ids.slice(at, at + perCall);
      const commands = some.flatMap((id): Command[] => [['get', redis.keys.instance(id)], command(id, redis)]);
      const replies = await redis.read(commands);
      for (const [index, id] of some.entries()) {
        const info = readInstance(replies[2 * index]);
        yield { id, info: info && { ...info, self: false }, reply: replies[2 * index + 1] };
      }
    }
  }
}

/** Instances in the order in which they started. */
export function inOrder(instances: readonly InstanceInfo[]): InstanceInfo[] {
  return instances.toSorted((one, other) => one.startedAt - other.startedAt || (one.id < other.id ? -1 : 1));
}
