import type { EngineSocket, EngineTransport } from './engine-handshakes.js';
import { FrameGate } from './frame-gate.js';
import type { SocketChecks } from './socket-checks.js';

/** A socket of socket.io: a connection has one in each namespace. */
export interface NamespaceSocket {
  readonly conn: EngineSocket;
  readonly nsp: { readonly name: string };
  emit(event: string, data: object): unknown;
  disconnect(close: boolean): unknown;
  once(event: 'disconnect', listener: () => void): unknown;
}

/** The frame of an event or an acknowledgement with binary attachments, which follow in frames of their own. */
const WITH_ATTACHMENTS = /^[56](\d{1,9})-/;
/** The namespace of a frame, unless it is the default one. */
const NAMESPACE = /^\d(?:\d+-)?(\/[^,]*)/;

/** Limits the frames of socket.io clients before socket.io reads them. */
export class EngineFrames {
  /** The sockets of each connection, by namespace. */
  private readonly sockets = new WeakMap<EngineSocket, Map<string, NamespaceSocket>>();

  constructor(
    private readonly checks: SocketChecks,
    private readonly closeAfter: number,
  ) {}

  /** Adds a socket to its connection. */
  add(socket: NamespaceSocket): void {
    const { conn, nsp } = socket;
    let own = this.sockets.get(conn);
    if (own === undefined) this.sockets.set(conn, (own = new Map()));
    const all = own.set(nsp.name, socket);
    socket.once('disconnect', () => {
      if (all.get(nsp.name) === socket) all.delete(nsp.name);
    });
  }

  /** Limits a connection. */
  limit(conn: EngineSocket): void {
    const gate = new FrameGate(
      {
        get isOpen() {
          return conn.readyState === 'open';
        },
        decide: (data, frames) => this.checks.frame(this.socketOf(conn, data) ?? conn, data, frames),
        notify: (data, event) => void this.socketOf(conn, data)?.emit('exception', event),
        close: () => this.close(conn),
      },
      this.closeAfter,
    );
    const frames = new AttachedFrames(gate);
    const controls = new ControlFrames(gate);
    if (conn.transport !== undefined) controls.follow(conn.transport);
    const emit = conn.emit.bind(conn);
    conn.emit = (event, ...args) => {
      if (event === 'packet') controls.packet(args[0] as Packet);
      // It is emitted for each probe that the client sends.
      else if (event === 'upgrading') controls.probe(args[0] as EngineTransport, conn);
      if (event === 'data') frames.receive(args[0], () => emit(event, ...args));
      // A client may send a frame and disconnect immediately.
      else if (event === 'close') gate.inTurn(() => emit(event, ...args));
      else return emit(event, ...args);
      return true;
    };
  }

  /** The socket that a frame is for; `undefined` before the connection has one there. */
  private socketOf(conn: EngineSocket, data: unknown): NamespaceSocket | undefined {
    const own = this.sockets.get(conn);
    const name = (typeof data === 'string' ? NAMESPACE.exec(data)?.[1] : undefined) ?? '/';
    return own?.get(name.split('?')[0]!) ?? own?.values().next().value;
  }

  /** Clients don't reconnect on their own after the server has disconnected their sockets. */
  private close(conn: EngineSocket): void {
    for (const socket of this.sockets.get(conn)?.values() ?? []) socket.disconnect(true);
    conn.close();
  }
}

/** A packet of engine.io: messages are frames of socket.io. */
interface Packet {
  readonly type: string;
  readonly data?: unknown;
}

/** Packets that are counted elsewhere, or end the connection. */
const NO_CONTROL: readonly string[] = ['message', 'error'];

/**
 * Frames of one connection that socket.io doesn't see: heartbeats, probes, and pings and pongs of the WebSocket. They are counted, but
 * can't be dropped.
 */
class ControlFrames {
  private readonly followed = new WeakSet<EngineTransport>();

  constructor(private readonly gate: FrameGate) {}

  packet({ type, data = '' }: Packet): void {
    if (!NO_CONTROL.includes(type)) this.count(data);
  }

  /** Counts a probe of the transport that the client is about to use. */
  probe(transport: EngineTransport, conn: EngineSocket): void {
    this.follow(transport);
    this.count('probe');
    // A connection that was closed doesn't close this transport immediately.
    if (conn.readyState !== 'open') transport.close();
  }

  /** Counts the control frames of a WebSocket. */
  follow(transport: EngineTransport): void {
    if (this.followed.has(transport)) return;
    this.followed.add(transport);
    const { socket } = transport;
    for (const event of ['ping', 'pong'] as const) socket?.on?.(event, (data) => this.count(data));
  }

  private count(data: unknown): void {
    this.gate.frame(data, () => {});
  }
}

/** A frame with its attachments. */
interface Message {
  isRefused: boolean;
}

/** Frames of one connection. Attachments share the decision of their frame: without it, socket.io could not read them. */
class AttachedFrames {
  /** Attachments that have not arrived yet, and how to handle them. */
  private missing = 0;
  private message: Message = { isRefused: false };

  constructor(private readonly gate: FrameGate) {}

  receive(data: unknown, pass: () => void): void {
    const { gate, message } = this;
    if (this.missing > 0 && typeof data !== 'string') {
      this.missing--;
      return gate.follow(() => (message.isRefused ? gate.countRefused() : pass()));
    }
    const own: Message = { isRefused: false };
    this.message = own;
    this.missing = typeof data === 'string' ? Number(WITH_ATTACHMENTS.exec(data)?.[1] ?? 0) : 0;
    gate.frame(data, pass, () => (own.isRefused = true), 1 + this.missing);
  }
}
