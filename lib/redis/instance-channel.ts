import { messages } from '../errors/messages.js';
import { ChannelListener } from './channel-listener.js';
import type { RedisClient } from './client.js';
import { withDeadline } from './deadline.js';

/** Who listens. */
export interface Listener {
  /** A message came; or, without one, some may have been missed until now. */
  onMessage(message?: string): void;
  /** From now on messages may be missed. */
  onDisconnect?(): void;
}

/** On this the instances of an app tell each other what they did to counters. It listens once somebody wants to hear. */
export class InstanceChannel {
  private readonly listeners: Listener[] = [];
  private readonly connection: ChannelListener;
  private started = false;

  constructor(
    private readonly client: RedisClient,
    private readonly channel: string,
    private readonly timeoutMs: number,
  ) {
    this.connection = new ChannelListener(
      client,
      channel,
      (message) => this.listeners.forEach((listener) => listener.onMessage(message)),
      () => this.listeners.forEach((listener) => listener.onDisconnect?.()),
      messages.instancesUnheard,
    );
  }

  listen(listener: Listener): void {
    this.listeners.push(listener);
    if (this.started) return;
    this.started = true;
    void this.connection.start();
  }

  close(): void {
    this.connection.close();
  }

  /**
   * Resolves when it is told; or could not be in time, and then nobody can be heard either. The time counts from when the
   * operation began that is told of: on the process's clock, in milliseconds.
   */
  async publish(message: string, since: number): Promise<void> {
    if (this.client.status !== 'ready') return;
    const left = since + this.timeoutMs - performance.now();
    await withDeadline(this.client.publish(this.channel, message), left).catch(() => undefined);
  }
}
