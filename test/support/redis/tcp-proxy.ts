import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Address } from './redis-servers.js';

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  lost: boolean;
}

/** Stands before a server, and can hold back what passes, as a network does that loses packets. */
export class TcpProxy {
  private readonly pairs = new Set<Pair>();
  private holdsRequests = false;
  private holdsReplies = false;
  private isCut = false;

  private constructor(
    private readonly listener: Server,
    private target: Address,
    /** How long each packet takes, in milliseconds. */
    private readonly delayMs: number,
  ) {}

  static async start(target: Address, port = 0, delayMs = 0): Promise<TcpProxy> {
    const listener = createServer();
    const proxy = new TcpProxy(listener, target, delayMs);
    listener.on('connection', (client) => proxy.accept(client));
    listener.listen(port, '127.0.0.1');
    await once(listener, 'listening');
    return proxy;
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.listener.address() as AddressInfo).port}`;
  }

  /** From now on the server hears nothing, or its client does not hear the replies. */
  hold(what: 'requests' | 'replies' | 'all'): void {
    this.holdsRequests = what !== 'replies';
    this.holdsReplies = what !== 'requests';
    this.apply();
  }

  /** What was held back arrives, but on connections that were lost. */
  pass(): void {
    this.holdsRequests = this.holdsReplies = false;
    this.apply();
  }

  /** The connections that exist hold back all from now on and never end, as when a firewall has forgotten them. */
  lose(): void {
    for (const pair of this.pairs) pair.lost = true;
    this.apply();
  }

  /** All connections end, with what was on its way, and none can be made. */
  cut(): void {
    this.isCut = true;
    this.drop();
  }

  /** Connections can be made again. */
  mend(): void {
    this.isCut = false;
  }

  /** All connections end, with what was on its way. New ones lead to another server. */
  aim(target: Address): void {
    this.target = target;
    this.drop();
  }

  async close(): Promise<void> {
    this.drop();
    this.listener.close();
    await once(this.listener, 'close');
  }

  private drop(): void {
    for (const { client, server } of this.pairs) {
      client.destroy();
      server.destroy();
    }
  }

  private accept(client: Socket): void {
    if (this.isCut) client.destroy();
    else this.join(client, connect(this.target.port, this.target.host));
  }

  private send(data: Buffer, to: Socket): void {
    if (this.delayMs === 0) to.write(data);
    else setTimeout(() => to.destroyed || to.write(data), this.delayMs);
  }

  private join(client: Socket, server: Socket): void {
    const pair: Pair = { client, server, lost: false };
    this.pairs.add(pair);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.setNoDelay(true);
      from.on('data', (data: Buffer) => this.send(data, to));
      from.on('error', () => undefined);
      from.on('close', () => {
        this.pairs.delete(pair);
        to.destroy();
      });
    }
    this.apply();
  }

  private apply(): void {
    for (const { client, server, lost } of this.pairs) {
      if (lost || this.holdsRequests) client.pause();
      else client.resume();
      if (lost || this.holdsReplies) server.pause();
      else server.resume();
    }
  }
}
