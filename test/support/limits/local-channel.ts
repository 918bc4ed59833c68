import type { InstanceChannel, Listener } from '../../../lib/storage/redis/instance-channel.js';

/** A channel within one process, which carries each message at once. */
export class LocalChannel {
  /** What was published, each message with the time since when it may take. */
  readonly published: [message: string, since: number][] = [];
  private readonly listeners: Listener[] = [];

  /** The same, as stores take it. */
  get asChannel(): InstanceChannel {
    return this as unknown as InstanceChannel;
  }

  listen(listener: Listener): void {
    this.listeners.push(listener);
  }

  publish(message: string, since: number): Promise<void> {
    this.published.push([message, since]);
    for (const listener of this.listeners) listener.onMessage(message);
    return Promise.resolve();
  }

  /** What was missed may have been anything. */
  connect(): void {
    for (const listener of this.listeners) listener.onMessage(undefined);
  }

  disconnect(): void {
    for (const listener of this.listeners) listener.onDisconnect?.();
  }

  close(): void {}
}
