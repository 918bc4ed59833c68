import { setTimeout as sleep } from 'node:timers/promises';
import type { Server } from '../connection.js';
import type { Bridge, Emitter } from './adapter.js';
import { type FullClient, NodeRedisServer, keyPrefixOf, OwnNodeRedisServer, ownCopyOf } from './node-redis-server.js';
import type { NodeRedisSentinel } from './types.js';

/** The part of a client with Sentinels that the library uses. */
export interface FullSentinel extends NodeRedisSentinel, Emitter {
  readonly _keyPrefix?: string;
  close(): Promise<unknown>;
  /**
   * Calls back with the client of the master once it is connected, and finds the master if it isn't. All commands of the client go through
   * it, but public methods offer only a part of it: if a connection breaks before a reply, they send the command again, and a check would
   * be charged twice.
   */
  _execute(isReadonly: boolean, use: (master: FullClient) => Promise<unknown>): Promise<unknown>;
}

/** How long to wait before searching for the master again, in milliseconds. */
const LOOK_AGAIN_MS = 100;

/** The master according to a client's Sentinels. */
export class NodeRedisMaster extends NodeRedisServer {
  protected override client: FullClient | undefined;
  private looking: Promise<void> | undefined;

  constructor(private readonly sentinel: FullSentinel) {
    super(keyPrefixOf(sentinel));
  }

  /** The client of a replaced master is closed. Finding the next one takes a moment. */
  override get status(): string {
    if (this.client?.isReady) return 'ready';
    if (!this.sentinel.isOpen) return 'end';
    void this.look();
    return 'connecting';
  }

  override async quit(): Promise<void> {
    await this.sentinel.close();
  }

  override disconnect(): void {
    if (this.sentinel.isOpen) void Promise.resolve(this.sentinel.destroy()).catch(() => undefined);
  }

  /** A connection to the current master that ends as soon as another one takes over, since a frozen master wouldn't end it. */
  override duplicate(): Server {
    return new OwnNodeRedisServer(
      () => (this.status === 'ready' ? ownCopyOf(this.client) : undefined),
      this.keyPrefix,
      (moved) => {
        const changed = ({ type }: { type: string }) => type === 'MASTER_CHANGE' && moved();
        this.sentinel.on('topology-change', changed);
        return () => this.sentinel.off('topology-change', changed);
      },
    );
  }

  protected override get emitter(): Emitter {
    return this.sentinel;
  }

  protected override readonly bridges: readonly Bridge[] = [
    ['error', (error: Error) => this.emit('error', error)],
    ['client-error', ({ error }: { error: Error }) => this.emit('error', error)],
    ['topology-change', () => void this.status],
    ['end', () => this.emit('end')],
  ];

  /** Never rejects. It is called again. */
  private look(): Promise<void> {
    this.looking ??= this.find()
      .then(
        () => this.emit('ready'),
        () => sleep(LOOK_AGAIN_MS, undefined, { ref: false }),
      )
      .finally(() => (this.looking = undefined));
    return this.looking;
  }

  private async find(): Promise<void> {
    // oxlint-disable-next-line no-underscore-dangle
    await this.sentinel._execute(false, (master) => {
      this.client = master;
      return Promise.resolve();
    });
  }
}
