import type { Connection } from '../../storage/redis/connection.js';
import { asStoreError, notConnected, serverOf } from '../../storage/redis/errors.js';
import { withDeadline } from '../../storage/redis/deadline.js';
import { noteSilence } from '../../storage/redis/silence.js';
import { consoleKeys } from '../../storage/stores/redis/keys.js';

// How long instances are remembered.

/** An instance that has not reported for this long is no longer running, since it reports once per second. */
export const LOST_AFTER_MS = 3500;
/** How long an instance that ended without reporting it is displayed as lost. */
export const LOST_SHOWN_MS = 600_000;
/** The counts of an ended instance are added to the sum of all ended ones this long after its last report. */
export const FOLD_AFTER_MS = 30_000;
/** An instance without contact for this long checks if others took it for an ended one. */
export const ABSENT_MS = 15_000;
/** Maximum number of instances to track, including ended ones. */
export const MOST_INSTANCES = 1000;
/** How long instances of the previous release are remembered after their last report. */
export const DAY_MS = 86_400_000;
/** How long the index of instances is kept: longer than any count. */
export const INDEX_SECONDS = (31 * DAY_MS) / 1000;
/** The key of the sum of all ended instances. */
export const ENDED = 'ended';
/** How often the description of an instance is refreshed, and how long it is kept after the instance is lost, in seconds. */
export const ABOUT_EVERY = 60;
export const ABOUT_SECONDS = LOST_SHOWN_MS / 1000 + 2 * ABOUT_EVERY;
/** How often instances report that their limits are still valid, in seconds. */
export const LIMITS_EVERY = 300;
/** How often ended instances are added to their sum, in seconds. */
export const FOLD_EVERY = 10;

/** A slower reply yields a less precise time. It is used only if no faster one came for this long, in milliseconds. */
const BELIEVED_MS = 10_000;

/** The Redis server's clock, derived from its replies. Before the first reply, this process's own clock. */
export class ConsoleClock {
  /** How far it is ahead of the monotonic clock. */
  private ahead: number | undefined;
  private roundTripMs = Infinity;
  private learntAt = -Infinity;

  /** Milliseconds since the epoch. */
  now(): number {
    return this.ahead === undefined ? Date.now() : performance.now() + this.ahead;
  }

  /** True once a reply contained the server's time. */
  get isLearnt(): boolean {
    return this.ahead !== undefined;
  }

  /** How far the clock of this process is ahead of it, in milliseconds. */
  get offsetMs(): number {
    return Math.round(Date.now() - this.now());
  }

  /** Processes the server's `time`, in milliseconds, from a reply. Both other times are on the monotonic clock. */
  learn(time: number, sentAt: number, answeredAt: number): void {
    const roundTripMs = answeredAt - sentAt;
    const isOlder = answeredAt - this.learntAt > BELIEVED_MS;
    if (roundTripMs > this.roundTripMs * 2 + 1 && !isOlder) return;
    this.ahead = time + roundTripMs / 2 - answeredAt;
    this.roundTripMs = roundTripMs;
    this.learntAt = answeredAt;
  }
}

export type Command = readonly [name: string, ...args: (string | number)[]];

/** The console's access to the app's own connection. */
export class ConsoleRedis {
  readonly keys: ReturnType<typeof consoleKeys>;
  /** The duration of the last call, in milliseconds. */
  latencyMs: number | null = null;

  constructor(
    readonly client: Connection,
    readonly prefix: string,
    readonly timeoutMs: number,
  ) {
    this.keys = consoleKeys(prefix);
  }

  /** Sends commands in one pipeline and returns their replies. Rejects with `RateLimitStoreError` within the deadline. */
  run(commands: readonly Command[]): Promise<unknown[]> {
    return this.send(commands, () => false);
  }

  /** Reads values that other instances wrote. A value of another type, for example from another release, counts as absent. */
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

/** Converts the reply of `TIME` to milliseconds. */
export function timeOf(reply: unknown): number {
  const [seconds, micros] = (reply as [string, string]).map(Number);
  return seconds! * 1000 + micros! / 1000;
}
