/** @ts-ignore ioredis is optional; without it, these types are `any`. */
import type { Redis } from 'ioredis';

/** The commands that ioredis sends on its own after a reconnect: for the selected database and the channels. */
const SENT_AGAIN = ['select', 'subscribe', 'psubscribe', 'ssubscribe'] as const;

type Command = (...args: unknown[]) => unknown;

/** The commands of a connection that ioredis sends on its own. Nothing awaits their replies. */
class FloatingCommands {
  private users = 0;
  /** True once `ready` was emitted. ioredis resends its commands before that. */
  private isAnnounced = true;

  constructor(private readonly connection: Redis) {
    // The next command reports the problem.
    this.handle('asking', () => true, ignore);
    for (const name of SENT_AGAIN) this.handle(name, () => this.isSentAgain, this.report);
  }

  begin(): void {
    if (this.users++ > 0) return;
    this.isAnnounced = this.connection.status === 'ready';
    this.connection.on('ready', this.onReady);
    this.connection.on('close', this.onClose);
  }

  end(): void {
    if (--this.users > 0) return;
    this.isAnnounced = true;
    this.connection.off('ready', this.onReady);
    this.connection.off('close', this.onClose);
  }

  private get isSentAgain(): boolean {
    return !this.isAnnounced && this.connection.status === 'ready';
  }

  private readonly onReady = () => void (this.isAnnounced = true);
  private readonly onClose = () => void (this.isAnnounced = false);
  private readonly report = (error: unknown) => {
    if (this.connection.listenerCount('error') > 0) this.connection.emit('error', error);
  };

  private handle(name: string, floats: () => boolean, onError: (error: unknown) => void): void {
    const commands = this.connection as unknown as Record<string, Command | undefined>;
    const command = commands[name];
    if (command === undefined) return;
    commands[name] = function (this: unknown, ...args) {
      const answer = command.apply(this, args);
      if (floats()) (answer as Promise<unknown>).catch(onError);
      return answer;
    };
  }
}

/** Several modules can share a connection. */
const known = new WeakMap<Redis, FloatingCommands>();

/**
 * Keeps commands that ioredis sends on its own from ending the process. Nothing awaits their replies, so a missing permission of the Redis
 * user, or another lost connection, would be an unhandled rejection. The app's own calls reject as before.
 *
 * @returns a function that stops this
 */
export function handleFloatingCommands(connection: Redis): () => void {
  let commands = known.get(connection);
  if (commands === undefined) known.set(connection, (commands = new FloatingCommands(connection)));
  commands.begin();
  return () => commands.end();
}

function ignore(): void {}
