import type { Redis } from 'ioredis';
import { logger } from '../errors/logger.js';
import { messages } from '../errors/messages.js';
import {
  CONNECT_TIMEOUT_MS,
  DISCONNECT_TIMEOUT_MS,
  isCluster,
  type RedisClient,
  ignoreConnectionErrors,
} from './client.js';

/** What each connection is made with: it is used once, and followed by a new one, so that every way to end is one way. */
const ONCE = {
  autoResubscribe: false,
  connectTimeout: CONNECT_TIMEOUT_MS,
  disconnectTimeout: DISCONNECT_TIMEOUT_MS,
  enableOfflineQueue: false,
  keepAlive: 10_000,
  lazyConnect: true,
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
} as const;

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1000;
/** After a server said no, as to a user who may not read the channel. */
const REFUSED_PAUSE_MS = 30_000;

/**
 * Listens to a channel on a connection of its own, made like the client's, and connects again whenever that one ends. On a
 * Cluster it listens to any node: each passes on what is published anywhere.
 */
export class ChannelListener {
  private connection: Redis | undefined;
  private timer: NodeJS.Timeout | undefined;
  private pauseMs = FIRST_PAUSE_MS;
  private warned = false;
  private closed = false;
  private settle: () => void = () => undefined;

  /** `heard` is told every message, and, without one, whenever some may have been missed; `deaf` when from now on some may be. */
  constructor(
    private readonly client: RedisClient,
    private readonly channel: string,
    private readonly onMessage: (message?: string) => void,
    private readonly onDisconnect: () => void = () => undefined,
    /** What is warned of, once, if the server does not let it listen. */
    private readonly refusal: (reason: string) => string = messages.ratesUnheard,
  ) {}

  /** Resolves when it listens, or could not at the first attempt. */
  start(): Promise<void> {
    return new Promise((resolve) => {
      this.settle = resolve;
      this.connect();
    });
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.connection?.disconnect();
    this.settle();
  }

  private connect(): void {
    if (this.closed) return this.settle();
    const node = this.node();
    if (node === undefined) return this.connectLater();
    const connection = node.duplicate(ONCE);
    this.connection = connection;
    ignoreConnectionErrors(connection);
    connection.once('end', () => {
      this.onDisconnect();
      this.connectLater();
    });
    connection.on('message', (_channel, message: string) => this.onMessage(message));
    connection.once('ready', () => void this.subscribe(connection));
    connection.connect().catch(() => undefined);
  }

  private async subscribe(connection: Redis): Promise<void> {
    try {
      await connection.subscribe(this.channel);
      this.pauseMs = FIRST_PAUSE_MS;
      this.onMessage();
      this.settle();
    } catch (error) {
      if (connection.status === 'ready') this.refused(error);
      connection.disconnect();
    }
  }

  private refused(error: unknown): void {
    this.pauseMs = REFUSED_PAUSE_MS;
    if (this.warned) return;
    this.warned = true;
    logger.warn(this.refusal(error instanceof Error ? error.message : String(error)));
  }

  private connectLater(): void {
    this.settle();
    if (this.closed) return;
    this.timer = setTimeout(() => this.connect(), this.pauseMs).unref();
    this.pauseMs = Math.min(this.pauseMs * 2, LONGEST_PAUSE_MS);
  }

  private node(): Redis | undefined {
    if (!isCluster(this.client)) return this.client;
    const nodes = this.client.nodes('master');
    return nodes[Math.floor(Math.random() * nodes.length)];
  }
}
