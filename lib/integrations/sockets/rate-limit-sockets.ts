import type { INestApplicationContext, Type, WebSocketAdapter } from '@nestjs/common';
import { configError, RateLimitConfigError } from '../../engine/errors/errors.js';
import { socketMessages } from '../../engine/errors/messages/sockets.js';
import { asObject } from '../../engine/util/objects.js';
import { providerOf } from '../../nest/copies.js';
import { SocketChecks, socketServices } from './socket-checks.js';
import { EngineFrames, FrameGate, type NamespaceSocket } from './frames.js';
import { EngineHandshakes, type EngineServer, type WsClient, WsHandshakes, type WsServer } from './handshakes.js';
import { readSocketOptions, type SocketLimitOptions } from './socket-options.js';

const limited = new WeakSet<object>();

/**
 * Limits the WebSockets of an app: handshakes, open connections and frames. It changes the adapter, and returns it:
 * `app.useWebSocketAdapter(rateLimitSockets(app, new IoAdapter(app), { ... }))`. Throws `RateLimitConfigError`.
 *
 * @param app the app, with `RateLimitModule` among its imports
 * @param adapter an `IoAdapter` or a `WsAdapter`, or a class that extends one of them
 * @param options the limits
 */
export function rateLimitSockets<Adapter extends WebSocketAdapter>(
  app: INestApplicationContext,
  adapter: Adapter,
  options: SocketLimitOptions,
): Adapter {
  if (!hasMethod(app, 'get')) throw configError('SLUICE_NOT_INJECTED', socketMessages.noApp(app));
  if (!hasMethod(adapter, 'create')) throw new RateLimitConfigError(socketMessages.noAdapter(adapter));
  if (limited.has(adapter)) throw configError('SLUICE_DUPLICATE_MODULE', socketMessages.limitedTwice());
  const settings = readSocketOptions(options);
  const find = <T>(token: Type<T> | symbol): T =>
    providerOf(app, token, 'rateLimitSockets', socketMessages.noRateLimitModule());
  const checks = new SocketChecks(settings, socketServices(find));
  const limitedServers = new WeakSet<object>();
  const create = adapter.create.bind(adapter);
  // The server that was made: an adapter of the app may pass options of its own to it.
  adapter.create = (port, serverOptions) => {
    const made = create(port, serverOptions) as { readonly server?: unknown };
    // A namespace of socket.io knows its server.
    const server = isIo(made) || isWs(made) ? made : (asObject(made.server) ?? made);
    if (!limitedServers.has(server)) limitServer(server, checks, adapter);
    limitedServers.add(server);
    return made;
  };
  limited.add(adapter);
  return adapter;
}

function hasMethod(value: unknown, name: string): boolean {
  return typeof asObject<Record<string, unknown>>(value)?.[name] === 'function';
}

const OPEN = 1;
/** The close code for a connection that broke the rules of its server. */
const POLICY_VIOLATION = 1008;

/** Events that a client triggers: a ping or a pong costs as much as a message. */
const FRAMES: readonly unknown[] = ['message', 'ping', 'pong'];

/** Limits the frames of a ws client before any listener gets them. */
function limitWsFrames(client: WsClient, checks: SocketChecks): void {
  const gate = new FrameGate(
    {
      get isOpen() {
        return client.readyState === OPEN;
      },
      decide: (data, frames) => checks.frame(client, data, frames),
      notify: (_, data) => client.send(JSON.stringify({ event: 'exception', data })),
      close: () => client.close(POLICY_VIOLATION, socketMessages.tooManyFrames()),
    },
    checks.closeAfter,
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

interface IoServer {
  readonly engine: EngineServer;
  of(namespace: string): Namespace;
  on(event: 'new_namespace', listener: (namespace: Namespace) => void): unknown;
}

interface Namespace {
  readonly name: string;
  on(event: 'connection', listener: (socket: NamespaceSocket) => void): unknown;
}

/** Limits a server. Throws `RateLimitConfigError` if it can't be limited. */
function limitServer(server: object, checks: SocketChecks, adapter: object): void {
  if (isIo(server)) limitIo(server, checks);
  else if (isWs(server)) limitWs(server, checks);
  else throw new RateLimitConfigError(socketMessages.noServer(adapter.constructor.name));
}

function limitIo(server: IoServer, checks: SocketChecks): void {
  if (checks.limitsHandshakes) new EngineHandshakes(checks).limit(server.engine);
  if (!checks.limitsFrames) return;
  const frames = new EngineFrames(checks);
  server.engine.on('connection', (conn) => {
    if (asObject(conn.request) !== undefined) checks.identify(conn.request!);
    frames.limit(conn);
  });
  const add = (namespace: Namespace) => void namespace.on('connection', (socket) => frames.add(socket));
  add(server.of('/'));
  server.on('new_namespace', add);
}

function limitWs(server: WsServer, checks: SocketChecks): void {
  if (checks.limitsHandshakes) new WsHandshakes(checks).limit(server);
  // Runs before the gateway, so that its messages count for the same address.
  server.prependListener('connection', (client, request) => {
    checks.identify(request);
    client.request ??= request;
    if (checks.limitsFrames) limitWsFrames(client, checks);
  });
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
