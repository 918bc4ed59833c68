import type { EventEmitter } from 'node:events';
import { type IncomingMessage, ServerResponse } from 'node:http';
import type { HttpException } from '@nestjs/common';
import { bodyOf } from '../../app/transports/refusal.js';
import { Attempts, logger } from '../../engine/errors/logger.js';
import { socketMessages } from '../../engine/errors/messages/sockets.js';
import type { Admission, HandshakeRequest, SocketChecks } from './socket-checks.js';

/** A request as engine.io has it: its query, and the response if it does not upgrade. */
interface EngineRequest extends HandshakeRequest {
  readonly _query?: { readonly sid?: string };
}

/** The response to a request, or the object that engine.io uses in its place for an upgrade. */
type EngineResponse = Pick<ServerResponse, 'setHeader'>;

/** A connection of engine.io over any transport. */
export interface EngineSocket {
  readonly id: string;
  readonly request?: HandshakeRequest | null;
  readonly readyState?: string;
  readonly transport?: EngineTransport;
  emit(event: string, ...args: unknown[]): boolean;
  once(event: 'close', listener: () => void): unknown;
  close(discard?: boolean): unknown;
}

/** The transport of a socket.io connection: polling or a WebSocket. */
export interface EngineTransport {
  /** The WebSocket, if it is one of ws. */
  readonly socket?: { on?(event: 'ping' | 'pong', listener: (data: unknown) => void): unknown };
  close(): unknown;
}

/** The server beneath one of socket.io. */
export interface EngineServer {
  use(middleware: (request: EngineRequest, response: EngineResponse, next: () => void) => void): unknown;
  on(event: 'connection', listener: (socket: EngineSocket) => void): unknown;
  on(event: 'connection_error', listener: (error: { readonly req?: object }) => void): unknown;
}

/** Limits the handshakes of socket.io, by polling and by WebSocket. */
export class EngineHandshakes {
  /** Admitted handshakes that are not connected yet. */
  private readonly admitted = new WeakMap<object, Admission>();

  private readonly attempts = new Attempts(logger);

  constructor(private readonly checks: SocketChecks) {}

  limit(engine: EngineServer): void {
    engine.use((request, response, next) => {
      // Requests of an existing connection aren't handshakes.
      const { _query: query } = request;
      if (query?.sid) return next();
      this.decide(request, response, next).catch((error: unknown) => {
        this.attempts.report(socketMessages.failed('handshake'), error);
        request.socket.destroy();
      });
    });
    engine.on('connection', (socket) => {
      const admission = this.take(socket.request);
      if (admission !== undefined) socket.once('close', () => admission.release());
    });
    engine.on('connection_error', ({ req }) => this.take(req)?.release());
  }

  private async decide(request: EngineRequest, response: EngineResponse, next: () => void): Promise<void> {
    const { socket } = request;
    const polls = response instanceof ServerResponse;
    const forget = ignoreErrors(socket);
    const admission = await this.checks.admit(request, polls ? response : undefined);
    forget();
    if (admission.refusal !== undefined) return answer(admission, polls);
    if (socket.destroyed || (polls && response.destroyed)) return admission.release();
    this.admitted.set(request, admission);
    // Until it is connected, nothing else shows that its client has left.
    const ending = polls ? response : socket;
    ending.once('close', () => this.take(request)?.release());
    if (!polls) {
      for (const [name, value] of Object.entries(headersOf(admission.response))) response.setHeader(name, value);
    }
    next();
  }

  private take(request: object | null | undefined): Admission | undefined {
    if (request === null || request === undefined) return undefined;
    const admission = this.admitted.get(request);
    this.admitted.delete(request);
    return admission;
  }
}

function answer({ refusal, response }: Admission, polls: boolean): void {
  const body = refuse(response, refusal!);
  if (polls) return void response.end(body);
  const { socket } = response.req;
  if (socket.destroyed) return;
  ignoreErrors(socket);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once('finish', () => socket.destroySoon());
  response.end(body);
}

function ignored(): void {}

/** Keeps a client that resets its connection from ending the process. Returns a function that lets others handle errors again. */
function ignoreErrors(stream: EventEmitter): () => void {
  stream.on('error', ignored);
  return () => void stream.off('error', ignored);
}

/** Answers a handshake of ws. */
type Verified = (isAccepted: boolean, status?: number, message?: string, headers?: Record<string, string>) => void;

interface HandshakeInfo {
  readonly req: HandshakeRequest;
}

type VerifyClient = (info: HandshakeInfo, verified: Verified) => unknown;

export interface WsClient {
  request?: IncomingMessage | undefined;
  readonly readyState: number;
  emit(event: string | symbol, ...args: unknown[]): boolean;
  send(text: string): void;
  close(code: number, reason: string): void;
}

export interface WsServer {
  readonly options: { verifyClient?: VerifyClient | null | undefined };
  prependListener(event: 'connection', listener: (client: WsClient, request: HandshakeRequest) => void): unknown;
  on(event: 'headers', listener: (headers: string[], request: object) => void): unknown;
}

/** Limits the handshakes of ws before the app's own `verifyClient`. */
export class WsHandshakes {
  private readonly headers = new WeakMap<object, Record<string, string>>();
  private readonly attempts = new Attempts(logger);

  constructor(private readonly checks: SocketChecks) {}

  limit(server: WsServer): void {
    const own = server.options.verifyClient ?? undefined;
    // ws waits for the callback because this function has two parameters.
    server.options.verifyClient = (info: HandshakeInfo, verified: Verified) => {
      this.decide(info, verified, own).catch((error: unknown) =>
        this.attempts.report(socketMessages.verifyFailed(), error),
      );
    };
    server.on('headers', (lines, request) => {
      for (const [name, value] of Object.entries(this.headers.get(request) ?? {})) lines.push(`${name}: ${value}`);
    });
  }

  private async decide(info: HandshakeInfo, verified: Verified, own: VerifyClient | undefined): Promise<void> {
    const { req } = info;
    const admission = await this.checks.admit(req);
    const { refusal, response } = admission;
    if (refusal !== undefined) {
      const body = refuse(response, refusal);
      return verified(false, refusal.getStatus(), body, headersOf(response));
    }
    // The connection is the socket, from the handshake to its end.
    if (req.socket.destroyed) admission.release();
    else req.socket.once('close', () => admission.release());
    this.headers.set(req, headersOf(response));
    verify(own, info, verified);
  }
}

function verify(own: VerifyClient | undefined, info: HandshakeInfo, verified: Verified): void {
  if (own === undefined) return verified(true);
  let accepted: unknown;
  try {
    accepted = own(info, verified);
  } catch (error) {
    verified(false, 500);
    throw error;
  }
  // A function with two parameters calls back itself.
  if (own.length < 2) verified(Boolean(accepted));
}

/** Sets status and headers for a rejected handshake. Returns the body, which is that of a rejected HTTP request. */
function refuse(response: ServerResponse, refusal: HttpException): string {
  const body = JSON.stringify(bodyOf(refusal));
  response.statusCode = refusal.getStatus();
  if (!response.hasHeader('Content-Type')) response.setHeader('Content-Type', 'application/json; charset=utf-8');
  return body;
}

/**
 * The headers of a response as text, for callers that write them. Names use the spelling of HTTP, since a library may add headers of its
 * own.
 */
function headersOf(response: ServerResponse): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of response.getHeaderNames()) {
    headers[name.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase())] = textOf(response.getHeader(name));
  }
  return headers;
}

function textOf(value: string | number | string[] | undefined): string {
  return Array.isArray(value) ? value.join(', ') : String(value);
}
