import { once } from 'node:events';
import { io } from 'socket.io-client';
import { WebSocket } from 'ws';

/** What arrived at a client: an event and its data. */
export interface Arrival {
  readonly event: string;
  readonly data: unknown;
}

/** A client of a gateway, of either library. */
export interface GatewayClient {
  send(event: string, data?: unknown): void;
  /** The next message to this client that it has not taken yet. */
  next(): Promise<Arrival>;
  close(): void;
}

export type Library = 'socket.io' | 'ws';
export const libraries: readonly Library[] = ['socket.io', 'ws'];

/** Connects to the gateway of an app that listens at `url`. */
export function connect(library: Library, url: string, headers: Record<string, string> = {}): Promise<GatewayClient> {
  return library === 'socket.io' ? connectSocketIo(url, headers) : connectWs(url, headers);
}

async function connectSocketIo(url: string, headers: Record<string, string>): Promise<GatewayClient> {
  const inbox = new Inbox();
  const socket = io(url, { transports: ['websocket'], extraHeaders: headers, reconnection: false, forceNew: true });
  socket.onAny((event: string, data: unknown) => inbox.put({ event, data }));
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('connect_error', reject);
  });
  return { send: (event, data) => socket.emit(event, data), next: () => inbox.next(), close: () => socket.close() };
}

async function connectWs(url: string, headers: Record<string, string>): Promise<GatewayClient> {
  const inbox = new Inbox();
  const socket = new WebSocket(url.replace('http', 'ws'), { headers });
  socket.on('message', (message: Buffer) => inbox.put(JSON.parse(message.toString()) as Arrival));
  await once(socket, 'open');
  return {
    send: (event, data) => socket.send(JSON.stringify({ event, data })),
    next: () => inbox.next(),
    close: () => socket.close(),
  };
}

/** Messages in the order in which they came, for whoever asks first. */
class Inbox {
  private readonly arrived: Arrival[] = [];
  private readonly waiting: ((arrival: Arrival) => void)[] = [];

  put(arrival: Arrival): void {
    const taker = this.waiting.shift();
    if (taker === undefined) this.arrived.push(arrival);
    else taker(arrival);
  }

  next(): Promise<Arrival> {
    const arrival = this.arrived.shift();
    return arrival === undefined ? new Promise((resolve) => this.waiting.push(resolve)) : Promise.resolve(arrival);
  }
}
