import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Address } from './redis-servers.js';

const CRLF = '\r\n';

/** Where a RESP value that begins at `at` ends, -1 if it is not all there. */
function endOf(data: Buffer, at: number): number {
  const line = data.indexOf(CRLF, at);
  if (line < 0) return -1;
  let end = line + CRLF.length;
  const count = Number(data.toString('latin1', at + 1, line));
  const type = String.fromCharCode(data[at]!);
  if (type === '$' || type === '=' || type === '!') {
    if (count >= 0) end += count + CRLF.length;
    return end <= data.length ? end : -1;
  }
  if (!'*%~>|'.includes(type)) return end;
  for (let left = type === '%' || type === '|' ? 2 * count : count; left > 0; left--) {
    end = endOf(data, end);
    if (end < 0) return -1;
  }
  return end;
}

/** Takes whole RESP values off a stream. */
class Values {
  private rest = Buffer.alloc(0);

  *take(data: Buffer): Generator<Buffer> {
    this.rest = Buffer.concat([this.rest, data]);
    for (let end = endOf(this.rest, 0); this.rest.length > 0 && end > 0; end = endOf(this.rest, 0)) {
      const value = this.rest.subarray(0, end);
      this.rest = this.rest.subarray(end);
      yield value;
    }
  }
}

/** The name of a command, in upper case. */
function nameOf(command: Buffer): string {
  const [, , name = ''] = command.toString('latin1', 0, 60).split(CRLF);
  return name.toUpperCase();
}

/** The index of the server that gets a command, by its name and how many commands of that name came before it. */
export type Route = (name: string, before: number) => number;

/** Sends each `EVALSHA` to another one of the servers, all else to the first. */
export const spreadHashes =
  (servers: number): Route =>
  (name, before) =>
    name === 'EVALSHA' ? (before + 1) % servers : 0;

/** The first commands of each connection. All servers get them. */
const OF_ALL = new Set(['AUTH', 'HELLO', 'SELECT', 'CLIENT']);

/** Stands before several servers, as managed services do, and decides for each command which of them gets it. */
export class SpreadProxy {
  /** The names of all commands that came. */
  readonly commands: string[] = [];
  private readonly sockets = new Set<Socket>();
  private readonly counts = new Map<string, number>();

  private constructor(
    private readonly listener: Server,
    private readonly targets: readonly Address[],
    private readonly route: Route,
  ) {}

  static async start(targets: readonly Address[], route: Route): Promise<SpreadProxy> {
    const listener = createServer();
    const proxy = new SpreadProxy(listener, targets, route);
    listener.on('connection', (client) => proxy.accept(client));
    listener.listen(0, '127.0.0.1');
    await once(listener, 'listening');
    return proxy;
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.listener.address() as AddressInfo).port}`;
  }

  countOf(command: string): number {
    return this.commands.filter((name) => name === command).length;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.listener.close();
    await once(this.listener, 'close');
  }

  private accept(client: Socket): void {
    /** For each command the replies of the servers that have it, in the order of the commands. */
    const waiting: { reply?: Buffer }[] = [];
    const handOn = () => {
      while (waiting[0]?.reply !== undefined) client.write(waiting.shift()!.reply!);
    };
    const asked: ({ reply?: Buffer } | undefined)[][] = this.targets.map(() => []);
    const servers = this.targets.map(({ port, host }, index) => {
      const server = this.keep(connect(port, host), client);
      const replies = new Values();
      server.on('data', (data: Buffer) => {
        for (const reply of replies.take(data)) {
          const place = asked[index]!.shift();
          if (place !== undefined) place.reply = reply;
        }
        handOn();
      });
      return server;
    });
    const commands = new Values();
    this.keep(client, ...servers).on('data', (data: Buffer) => {
      for (const command of commands.take(data)) {
        const name = nameOf(command);
        this.commands.push(name);
        const place = {};
        waiting.push(place);
        const before = this.counts.get(name) ?? 0;
        this.counts.set(name, before + 1);
        const to = OF_ALL.has(name) ? 0 : this.route(name, before);
        for (const [index, server] of servers.entries()) {
          if (index !== to && !OF_ALL.has(name)) continue;
          asked[index]!.push(index === to ? place : undefined);
          server.write(command);
        }
      }
    });
  }

  /** Ends others with a socket. */
  private keep(socket: Socket, ...others: Socket[]): Socket {
    this.sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.sockets.delete(socket);
      for (const other of others) other.destroy();
    });
    return socket;
  }
}
