import { logger } from '../../engine/errors/logger.js';
import { messages } from '../../engine/errors/messages/general.js';
import { ChannelListener } from './channel-listener.js';
import type { Connection } from './connection.js';
import { withDeadline } from './deadline.js';

/** A listener of the channel. */
export interface Listener {
  /** Gets each message; `undefined` if some may have been missed. */
  onMessage(message?: string): void;
  /** Called when messages may be missed from now on. */
  onDisconnect?(): void;
}

/** Carries messages about counters between the instances of an app. It connects when the first listener is added. */
export class InstanceChannel {
  private readonly listeners: Listener[] = [];
  private readonly connection: ChannelListener;
  private started = false;

  constructor(
    private readonly client: Connection,
    private readonly channel: string,
    private readonly timeoutMs: number,
  ) {
    this.connection = new ChannelListener(
      client,
      channel,
      (message) => this.listeners.forEach((listener) => listener.onMessage(message)),
      () => this.listeners.forEach((listener) => listener.onDisconnect?.()),
      (reason) => logger.warn(messages.refusalsNotWatched(channel, reason)),
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
   * Resolves when the message was sent, or could not be sent in time; the listeners are disconnected in the latter case. The time counts
   * from `since`, when the operation began, in milliseconds of the monotonic clock.
   */
  async publish(message: string, since: number): Promise<void> {
    if (this.client.status !== 'ready') return;
    const left = since + this.timeoutMs - performance.now();
    await withDeadline(this.client.publish(this.channel, message), left).catch(() => undefined);
  }
}
