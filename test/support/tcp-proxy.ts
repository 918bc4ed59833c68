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

  private constructor(private readonly listener: Server) {}

  static async start(target: Address, port = 0): Promise<TcpProxy> {
    const listener = createServer();
    const proxy = new TcpProxy(listener);
    listener.on('connection', (client) => proxy.join(client, connect(target.port, target.host)));
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

  async close(): Promise<void> {
    for (const { client, server } of this.pairs) {
      client.destroy();
      server.destroy();
    }
    this.listener.close();
    await once(this.listener, 'close');
  }

  private join(client: Socket, server: Socket): void {
    const pair: Pair = { client, server, lost: false };
    this.pairs.add(pair);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.setNoDelay(true);
      from.on('data', (data) => to.write(data));
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
