import { isCluster } from '../../storage/redis/client.js';
import type { Connection } from '../../storage/redis/connection.js';
import { notConnected } from '../../storage/redis/connection-errors.js';
import { withDeadline } from '../../storage/redis/deadline.js';
import { noteSilence } from '../../storage/redis/silence.js';
import { asStoreError, serverOf } from '../../storage/redis/store-error.js';
import { consoleKeys } from '../../storage/stores/redis/keys.js';

// How long instances are known.

/** An instance that has not reported for this long no longer runs: it reports once a second. */
export const LOST_AFTER_MS = 3500;
/** How long an instance that ended without saying so is shown as lost. */
export const LOST_SHOWN_MS = 600_000;
/** What an ended instance counted is added to the sum of all ended ones this long after its last report. */
export const FOLD_AFTER_MS = 30_000;
/** An instance that had no contact for this long finds out whether others took it for an ended one. */
export const ABSENT_MS = 15_000;
/** The most instances to keep track of, including those that ended. */
export const MOST_INSTANCES = 1000;
/** How long instances of the release before are known after their last report. */
export const DAY_MS = 86_400_000;
/** How long the index of instances is kept: longer than any count. */
export const INDEX_SECONDS = (31 * DAY_MS) / 1000;
/** The name under which the sum of all ended instances is stored. */
export const ENDED = 'ended';
/** How often the description of an instance is refreshed, and how long it is kept once the instance is lost, in seconds. */
export const ABOUT_EVERY = 60;
export const ABOUT_SECONDS = LOST_SHOWN_MS / 1000 + 2 * ABOUT_EVERY;
/** How often instances report that their limits still apply, in seconds. */
export const LIMITS_EVERY = 300;
/** How often ended instances are added to their sum, in seconds. */
export const FOLD_EVERY = 10;

/** A slower reply shows the time less exactly, and is used only if no faster one came for this long, in milliseconds. */
const BELIEVED_MS = 10_000;

/** The Redis server's clock, as learnt from replies; this process's own until there is one. */
export class ConsoleClock {
  /** How much it is ahead of the monotonic clock. */
  private ahead: number | undefined;
  private roundTripMs = Infinity;
  private learntAt = -Infinity;

  /** Milliseconds since the epoch. */
  now(): number {
    return this.ahead === undefined ? Date.now() : performance.now() + this.ahead;
  }

  /** Whether a reply has shown the server's time. */
  get isLearnt(): boolean {
    return this.ahead !== undefined;
  }

  /** How much the clock of this process is ahead of it, in milliseconds. */
  get offsetMs(): number {
    return Math.round(Date.now() - this.now());
  }

  /** Learns the server's `time`, in milliseconds, from a reply. Both other times are those of the monotonic clock. */
  learn(time: number, sentAt: number, answeredAt: number): void {
    const roundTripMs = answeredAt - sentAt;
    const isOlder = answeredAt - this.learntAt > BELIEVED_MS;
    if (roundTripMs > this.roundTripMs * 2 + 1 && !isOlder) return;
    this.ahead = time + roundTripMs / 2 - answeredAt;
    this.roundTripMs = roundTripMs;
    this.learntAt = answeredAt;
  }
}

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
