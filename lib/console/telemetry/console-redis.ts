import { isCluster } from '../../storage/redis/client.js';
import type { Connection } from '../../storage/redis/connection.js';
import { notConnected } from '../../storage/redis/connection-errors.js';
import { withDeadline } from '../../storage/redis/deadline.js';
import { noteSilence } from '../../storage/redis/silence.js';
import { asStoreError, serverOf } from '../../storage/redis/store-error.js';
import { consoleKeys } from '../../storage/stores/redis/keys.js';

/** A command with its arguments. */
export type Command = readonly [name: string, ...args: (string | number)[]];

/** The console's use of the app's own connection. */
export class ConsoleRedis {
  readonly keys: ReturnType<typeof consoleKeys>;
  /** The duration of the last call, in milliseconds. */
  latencyMs: number | null = null;

  constructor(
    readonly client: Connection,
    prefix: string,
    private readonly timeoutMs: number,
  ) {
    this.keys = consoleKeys(prefix);
  }

  get isCluster(): boolean {
    return isCluster(this.client);
  }

  /** Sends commands in one pipeline, and returns their replies. Rejects with `RateLimitStoreError`, in time. */
  run(commands: readonly Command[]): Promise<unknown[]> {
    return this.send(commands, () => false);
  }

  /** Reads what other instances wrote: a value of another type, such as one of another release, counts as absent. */
  read(commands: readonly Command[]): Promise<unknown[]> {
    return this.send(commands, ({ message }) => message.startsWith('WRONGTYPE'));
  }

  private async send(commands: readonly Command[], isNone: (error: Error) => boolean): Promise<unknown[]> {
    if (commands.length === 0) return [];
    const { client } = this;
    if (client.status !== 'ready') throw notConnected(client);
    const sentAt = performance.now();
    try {
      const pipeline = client.pipeline(commands.map(([name, ...args]) => [name, ...args]));
      const replies = (await withDeadline(pipeline.exec(), this.timeoutMs)) ?? [];
      const failure = replies.find(([error]) => error !== null && !isNone(error));
      if (failure !== undefined) throw failure[0]!;
      this.latencyMs = performance.now() - sentAt;
      return replies.map(([error, reply]) => (error === null ? reply : null));
    } catch (error) {
      this.latencyMs = null;
      noteSilence(client);
      throw asStoreError(error, serverOf(client));
    }
  }
}

/** Reads the reply of `TIME` into milliseconds. */
export function timeOf(reply: unknown): number {
  const [seconds, micros] = (reply as [string, string]).map(Number);
  return seconds! * 1000 + micros! / 1000;
}
