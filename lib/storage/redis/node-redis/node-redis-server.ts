import type { Server } from '../connection.js';
import { type Bridge, type Emitter, NodeRedisAdapter } from './adapter.js';
import type { NodeRedisClient } from './types.js';

/** The part of a single server's client that the library uses. */
export interface FullClient extends NodeRedisClient, Emitter {
  readonly _keyPrefix?: string;
  connect(): Promise<unknown>;
  close(): Promise<unknown>;
  duplicate(overrides?: object): FullClient;
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
}

interface ClientOptions {
  readonly socket?: { readonly host?: string; readonly port?: number; readonly path?: string };
}

/** One server, through the node-redis client that currently leads to it. */
export abstract class NodeRedisServer extends NodeRedisAdapter implements Server {
  readonly isCluster = false;

  /** The client that currently leads to the server. */
  protected abstract get client(): FullClient | undefined;

  get status(): string {
    const { client } = this;
    if (client?.isReady) return 'ready';
    return client?.isOpen ? 'connecting' : 'end';
  }

  /** The address of the server, for messages. */
  get options(): Server['options'] & { readonly path?: string } {
    const { socket = {} } = optionsOf(this.client);
    const { host = 'localhost', port = 6379, path } = socket;
    const place = path === undefined ? { host, port } : { path };
    return this.keyPrefix === undefined ? place : { ...place, keyPrefix: this.keyPrefix };
  }

  script(subcommand: 'LOAD', source: string): Promise<unknown> {
    return this.send(['SCRIPT', subcommand, source]);
  }

  asking(): Promise<unknown> {
    return this.send(['ASKING']);
  }

  wait(replicas: number, timeoutMs: number): Promise<number> {
    return this.send(['WAIT', String(replicas), String(timeoutMs)]) as Promise<number>;
  }

  subscribe(_channel: string): Promise<unknown> {
    return Promise.reject(new Error('only a connection of its own subscribes'));
  }

  connect(): Promise<unknown> {
    return this.notReady();
  }

  async quit(): Promise<void> {
    await this.client?.close();
  }

  disconnect(): void {
    if (this.client?.isOpen) this.client.destroy();
  }

  override copy(): Server {
    return this.duplicate();
  }

  duplicate(): Server {
    return new OwnNodeRedisServer(() => ownCopyOf(this.client), this.keyPrefix);
  }

  protected send(args: string[]): Promise<unknown> {
    const { client } = this;
    return client?.isReady ? client.sendCommand(args, this.commandOptions) : this.notReady();
  }

  protected override sendTo(_key: string | undefined, args: string[]): Promise<unknown> {
    return this.send(args);
  }

  protected override get emitter(): Emitter | undefined {
    return this.client;
  }

  protected override readonly bridges: readonly Bridge[] = [
    ['ready', () => this.emit('ready')],
    ['error', (error: Error) => this.failed(error)],
    ['end', () => this.ended()],
  ];

  protected failed(error: Error): void {
    this.emit('error', error);
  }

  protected ended(): void {
    this.emit('end');
  }
}

/** The server of a client that the app has created. */
export class GivenNodeRedisServer extends NodeRedisServer {
  constructor(protected override readonly client: FullClient) {
    super(keyPrefixOf(client));
  }
}

/**
 * A connection of the library. It doesn't reconnect on its own: the code that created it connects it again or creates another one.
 */
export class OwnNodeRedisServer extends NodeRedisServer {
  protected override client: FullClient | undefined;
  /** From `connect` until the event `end`. */
  private isUp = false;
  private hasSocket = false;
  private stopWatching: (() => void) | undefined;

  constructor(
    private readonly make: () => FullClient | undefined,
    keyPrefix: string | undefined,
    /** Calls back when another server should be used instead. Returns a function that stops this. */
    private readonly whenMoved: (moved: () => void) => () => void = () => () => undefined,
  ) {
    super(keyPrefix);
  }

  override get status(): string {
    if (this.client?.isReady) return 'ready';
    return this.client?.isOpen ? 'connecting' : 'wait';
  }

  override async connect(): Promise<void> {
    this.disconnect();
    this.isUp = true;
    this.hasSocket = false;
    const client = this.make();
    this.client = client;
    // A frozen server accepts connections but never answers.
    const timer = setTimeout(() => this.disconnect(), CONNECT_TIMEOUT_MS);
    try {
      if (client === undefined) return await this.notReady();
      this.listenTo(client);
      this.stopWatching = this.whenMoved(() => this.disconnect());
      await client.connect();
    } catch (error) {
      if (this.client === client) this.ended();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  override subscribe(channel: string): Promise<unknown> {
    const { client } = this;
    if (!client?.isReady) return this.notReady();
    return client.subscribe(channel, (message) => this.emit('message', channel, message));
  }

  /** A client that is destroyed before it has a socket would connect anyway, and stay connected. */
  override disconnect(): void {
    const { client } = this;
    if (this.hasSocket) super.disconnect();
    else client?.on('connect', () => client.destroy());
    this.ended();
  }

  private listenTo(client: FullClient): void {
    client.on('connect', () => (this.hasSocket ||= this.client === client));
    for (const [event, listener] of this.bridges) {
      client.on(event, (...args) => {
        if (this.client === client) listener(...(args as never[]));
      });
    }
  }

  /** It listens to each of its clients itself. */
  protected override get emitter(): undefined {
    return undefined;
  }

  /** A client that doesn't reconnect emits no `end` when its connection breaks. */
  protected override failed(error: Error): void {
    super.failed(error);
    if (!this.client?.isOpen) this.ended();
  }

  protected override ended(): void {
    if (!this.isUp) return;
    this.isUp = false;
    this.stopWatching?.();
    this.stopWatching = undefined;
    super.ended();
  }
}

/** How long to try to connect. */
const CONNECT_TIMEOUT_MS = 2000;

/** A copy of a client: its commands fail immediately, and it doesn't have the app's automatic behavior. */
export function ownCopyOf(client: FullClient | undefined): FullClient | undefined {
  return client?.duplicate({
    socket: {
      ...optionsOf(client).socket,
      connectTimeout: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelay: 10_000,
      reconnectStrategy: false,
    },
    clientSideCache: undefined,
    emitInvalidate: undefined,
    commandOptions: undefined,
    disableOfflineQueue: true,
  });
}

/** The prefix of the keys in all commands of a client, an option of version 6. The library sends raw commands, which don't have it. */
export function keyPrefixOf(client: { readonly _keyPrefix?: string | undefined }): string | undefined {
  const { _keyPrefix: keyPrefix } = client;
  return keyPrefix === '' ? undefined : keyPrefix;
}

function optionsOf(client: { readonly options?: object | undefined } | undefined): ClientOptions {
  return client?.options ?? {};
}
