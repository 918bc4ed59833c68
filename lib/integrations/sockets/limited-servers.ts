import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { socketMessages } from '../../engine/errors/messages/sockets.js';
import { asObject } from '../../engine/util/objects.js';
import { EngineFrames, type NamespaceSocket } from './engine-frames.js';
import { EngineHandshakes, type EngineServer } from './engine-handshakes.js';
import type { SocketChecks } from './socket-checks.js';
import { WsHandshakes, type WsServer, type WsClient } from './ws-handshakes.js';
import { FrameGate } from './frame-gate.js';

const OPEN = 1;
/** The close code for a connection that broke the rules of its server. */
const POLICY_VIOLATION = 1008;

/** Events that a client triggers: a ping or a pong costs as much as a message. */
const FRAMES: readonly unknown[] = ['message', 'ping', 'pong'];

/** Limits the frames of a ws client before any listener gets them. */
function limitWsFrames(client: WsClient, checks: SocketChecks, closeAfter: number): void {
  const gate = new FrameGate(
    {
      get isOpen() {
        return client.readyState === OPEN;
      },
      decide: (data, frames) => checks.frame(client, data, frames),
      notify: (_, data) => client.send(JSON.stringify({ event: 'exception', data })),
      close: () => client.close(POLICY_VIOLATION, socketMessages.tooManyFrames()),
    },
    closeAfter,
  );
  // `emit` reaches all listeners: those of Nest, and those that the app adds in `handleConnection`.
  const emit = client.emit.bind(client);
  client.emit = (event, ...args) => {
    if (FRAMES.includes(event)) {
      const pass = () => void emit(event, ...args);
      // A rejected pong still shows that the client is alive: apps end connections that send none.
      gate.frame(args[0], pass, event === 'pong' ? pass : undefined);
    }
    // A client may send and leave at once.
    else if (event === 'close') gate.inTurn(() => emit(event, ...args));
    else return emit(event, ...args);
    return true;
  };
}

/** A server of socket.io. */
interface IoServer {
  readonly engine: EngineServer;
  of(namespace: string): Namespace;
  on(event: 'new_namespace', listener: (namespace: Namespace) => void): unknown;
}

interface Namespace {
  readonly name: string;
  on(event: 'connection', listener: (socket: NamespaceSocket) => void): unknown;
}

/** The servers of an adapter. Each is limited once. */
export class LimitedServers {
  private readonly known = new WeakSet<object>();

  constructor(
    private readonly checks: SocketChecks,
    private readonly closeAfter: number,
    /** The name of the adapter, for messages. */
    private readonly adapter: string,
  ) {}

  /** Limits a server, or the server of a namespace, and returns its argument. Throws `RateLimitConfigError` if it can't be limited. */
  limit<Made extends object>(made: Made): Made {
    // A namespace of socket.io knows its server.
    const { server: parent } = made as { readonly server?: unknown };
    const server = isIo(made) || isWs(made) ? made : (asObject(parent) ?? made);
    if (this.known.has(server)) return made;
    this.known.add(server);
    if (isIo(server)) this.limitIo(server);
    else if (isWs(server)) this.limitWs(server);
    else throw new RateLimitConfigError(socketMessages.noServer(this.adapter));
    return made;
  }

  private limitIo(server: IoServer): void {
    const { checks } = this;
    if (checks.limitsHandshakes) new EngineHandshakes(checks).limit(server.engine);
    if (!checks.limitsFrames) return;
    const frames = new EngineFrames(checks, this.closeAfter);
    server.engine.on('connection', (conn) => {
      if (asObject(conn.request) !== undefined) checks.identify(conn.request!);
      frames.limit(conn);
    });
    const add = (namespace: Namespace) => void namespace.on('connection', (socket) => frames.add(socket));
    add(server.of('/'));
    server.on('new_namespace', add);
  }

  private limitWs(server: WsServer): void {
    const { checks } = this;
    if (checks.limitsHandshakes) new WsHandshakes(checks).limit(server);
    // Runs before the gateway, so that its messages count for the same address.
    server.prependListener('connection', (client, request) => {
      checks.identify(request);
      client.request ??= request;
      if (checks.limitsFrames) limitWsFrames(client, checks, this.closeAfter);
    });
  }
}

function isIo(server: object): server is IoServer {
  const { engine, of } = server as { readonly [part in keyof IoServer]?: unknown };
  const { use, on } = asObject<{ readonly [part in keyof EngineServer]?: unknown }>(engine) ?? {};
  return typeof of === 'function' && typeof use === 'function' && typeof on === 'function';
}

function isWs(server: object): server is WsServer {
  const { options, prependListener } = server as { readonly [part in keyof WsServer]?: unknown };
  return 'handleUpgrade' in server && asObject(options) !== undefined && typeof prependListener === 'function';
}
