import type { HttpException } from '@nestjs/common';
import { RateLimitExceededException } from '../../app/http/rate-limit.exceptions.js';
import { refusalData } from '../../app/transports/refusal.js';
import { Attempts, logger } from '../../engine/errors/logger.js';
import { socketMessages } from '../../engine/errors/messages/sockets.js';
import { type Awaitable, isPromise } from '../../engine/util/awaitable.js';
import type { EngineSocket, EngineTransport } from './handshakes.js';
import type { SocketChecks } from './socket-checks.js';
import { getOrMake } from '../../engine/util/objects.js';

const attempts = new Attempts(logger);

/** Rejected frames are forgotten after this many milliseconds without another one. */
const FORGIVEN_AFTER_MS = 60_000;

/** Maximum number of frames of one connection that wait for their decisions. */
const MOST_WAITING = 10_000;

interface GatedConnection {
  /** True if frames still reach handlers. */
  readonly isOpen: boolean;
  decide(data: unknown, frames: number): Awaitable<HttpException | undefined>;
  /** Sends the event `exception` to the client of a rejected frame. */
  notify(data: unknown, event: object): void;
  /** Closes the connection because too many of its frames were rejected. */
  close(): void;
}

/** Passes the frames of one connection on in their order, unless a limit rejects them. */
export class FrameGate {
  private refused = 0;
  private lastRefusal = 0;
  private waiting = 0;
  /** The last pending step, while anything waits. */
  private last: Promise<void> | undefined;

  constructor(
    private readonly connection: GatedConnection,
    private readonly closeAfter: number,
  ) {}

  /**
   * Passes a frame on if its limits have room.
   *
   * @param refused called if a limit rejects the frame
   * @param frames the number of frames to count it as
   */
  frame(data: unknown, pass: () => void, refused?: () => void, frames = 1): void {
    const { connection } = this;
    if (!this.isReady) return;
    const decided = connection.decide(data, frames);
    const conclude = (refusal: HttpException | undefined) => {
      if (refusal === undefined) return pass();
      refused?.();
      this.refuse(data, refusal);
    };
    if (!isPromise(decided)) return this.inTurn(() => conclude(decided));
    this.wait(decided.then((refusal) => () => conclude(refusal)));
  }

  /** Calls back once everything before has passed; immediately if nothing waits. */
  inTurn(pass: () => void): void {
    if (this.last === undefined) return pass();
    this.wait(Promise.resolve(pass));
  }

  /** Passes on a frame that was decided together with an earlier one, when its turn comes. */
  follow(pass: () => void): void {
    if (this.isReady) this.inTurn(pass);
  }

  countRefused(): void {
    const now = performance.now();
    if (now - this.lastRefusal > FORGIVEN_AFTER_MS) this.refused = 0;
    this.lastRefusal = now;
    if (++this.refused >= this.closeAfter) this.overflow();
  }

  /** True if another frame can be queued. A client that sends faster than the store decides must not fill the memory. */
  private get isReady(): boolean {
    if (!this.connection.isOpen) return false;
    if (this.waiting < MOST_WAITING) return true;
    this.overflow();
    return false;
  }

  private wait(next: Promise<() => void>): void {
    this.waiting++;
    const turn = this.take(next, this.last).finally(() => {
      this.waiting--;
      if (this.last === turn) this.last = undefined;
    });
    this.last = turn;
  }

  private async take(next: Promise<() => void>, before: Promise<void> | undefined): Promise<void> {
    const [pass] = await Promise.all([next, before]);
    try {
      pass();
    } catch (error) {
      // The error comes from a listener of the app. The listeners after it must still get their frames.
      attempts.report(socketMessages.listenerFailed(), error);
    }
  }

  private refuse(data: unknown, refusal: HttpException): void {
    if (!this.connection.isOpen) return;
    this.connection.notify(data, refusalData(refusal));
    // Connections stay open while the store fails.
    if (refusal instanceof RateLimitExceededException) this.countRefused();
  }

  private overflow(): void {
    if (this.connection.isOpen) this.connection.close();
  }
}

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

  constructor(private readonly checks: SocketChecks) {}

  add(socket: NamespaceSocket): void {
    const { conn, nsp } = socket;
    const all = getOrMake(this.sockets, conn, () => new Map<string, NamespaceSocket>()).set(nsp.name, socket);
    socket.once('disconnect', () => {
      if (all.get(nsp.name) === socket) all.delete(nsp.name);
    });
  }

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
      this.checks.closeAfter,
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

/** Frames of one connection. Attachments share the decision of their frame: without it, socket.io could not read them. */
class AttachedFrames {
  /** Attachments that have not arrived yet, and how to handle them. */
  private missing = 0;
  private message = { isRefused: false };

  constructor(private readonly gate: FrameGate) {}

  receive(data: unknown, pass: () => void): void {
    const { gate, message } = this;
    if (this.missing > 0 && typeof data !== 'string') {
      this.missing--;
      return gate.follow(() => (message.isRefused ? gate.countRefused() : pass()));
    }
    const own = { isRefused: false };
    this.message = own;
    this.missing = typeof data === 'string' ? Number(WITH_ATTACHMENTS.exec(data)?.[1] ?? 0) : 0;
    gate.frame(data, pass, () => (own.isRefused = true), 1 + this.missing);
  }
}
