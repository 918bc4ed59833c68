import { reasonOf } from '../../engine/errors/reasons.js';
import { CONNECT_TIMEOUT_MS, DISCONNECT_TIMEOUT_MS, isCluster, ignoreConnectionErrors, mastersOf } from './client.js';
import type { Connection, Server } from './connection.js';
import { isErrorReply } from './errors.js';
import { endSentinels } from './sentinels.js';
import { longestSilenceOf } from './silence.js';

/** A connection is used once and then replaced by a new one, so that all ways in which it can end are handled alike. */
const SINGLE_USE = {
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
/** How often to check if the node that it listens to is still a master: nothing reports a frozen one. */
const LOOK_EVERY_MS = 1000;
/** The pause after an error reply, for example if the Redis user has no access to the channel. */
const REFUSED_PAUSE_MS = 30_000;

/**
 * Listens to a channel on a separate connection with the client's options, and reconnects whenever it ends. On a Cluster it listens to any
 * node, since each forwards the messages of all.
 */
export class ChannelListener {
  private connection: Server | undefined;
  private timer: NodeJS.Timeout | undefined;
  private pauseMs = FIRST_PAUSE_MS;
  private isRefused = false;
  private closed = false;
  private started: () => void = () => undefined;

  /**
   * `onMessage` gets every message, and `undefined` once it listens, since messages may have been missed before. `onDisconnect` is called
   * when messages may be missed from now on.
   */
  constructor(
    private readonly client: Connection,
    private readonly channel: string,
    private readonly onMessage: (message?: string) => void,
    private readonly onDisconnect: () => void,
    /** Called once if the server doesn't allow it to listen. */
    private readonly onRefused: (reason: string) => void,
  ) {}

  /** Resolves after the first attempt to listen, failed or not. */
  start(): Promise<void> {
    return new Promise((resolve) => {
      this.started = resolve;
      this.connect();
    });
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.connection?.disconnect();
    this.started();
  }

  private connect(): void {
    if (this.closed) return this.started();
    const node = this.node();
    if (node === undefined) return this.connectLater();
    const socketTimeout = longestSilenceOf(node);
    const connection = node.duplicate(socketTimeout === undefined ? SINGLE_USE : { ...SINGLE_USE, socketTimeout });
    this.connection = connection;
    ignoreConnectionErrors(connection);
    const leave = () => void (this.isReplaced(node) && connection.disconnect());
    const watch = isCluster(this.client) ? setInterval(leave, LOOK_EVERY_MS).unref() : undefined;
    connection.once('end', () => {
      clearInterval(watch);
      endSentinels(connection);
      this.onDisconnect();
      this.connectLater();
    });
    connection.on('message', (_channel, message: string) => this.onMessage(message));
    connection.once('ready', () => void this.subscribe(connection));
    connection.connect().catch(() => undefined);
  }

  private async subscribe(connection: Server): Promise<void> {
    try {
      await connection.subscribe(this.channel);
      this.pauseMs = FIRST_PAUSE_MS;
      this.onMessage();
      this.started();
    } catch (error) {
      if (!this.closed && isErrorReply(error)) this.refused(error);
      connection.disconnect();
    }
  }

  private refused(error: unknown): void {
    this.pauseMs = REFUSED_PAUSE_MS;
    if (this.isRefused) return;
    this.isRefused = true;
    this.onRefused(reasonOf(error));
  }

  private connectLater(): void {
    this.started();
    if (this.closed) return;
    this.timer = setTimeout(() => this.connect(), this.pauseMs).unref();
    this.pauseMs = Math.min(this.pauseMs * 2, LONGEST_PAUSE_MS);
  }

  private node(): Server | undefined {
    const nodes = mastersOf(this.client);
    return nodes[Math.floor(Math.random() * nodes.length)];
  }

  /** Returns true if a node of a Cluster is no longer a master, and there are others. */
  private isReplaced({ options: { host, port } }: Server): boolean {
    const masters = mastersOf(this.client);
    return masters.length > 0 && !masters.some(({ options }) => options.host === host && options.port === port);
  }
}
