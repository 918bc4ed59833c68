import type { IncomingMessage } from 'node:http';
import { Attempts, logger } from '../../engine/errors/logger.js';
import { socketMessages } from '../../engine/errors/messages/sockets.js';
import { headersOf, refuse } from './refusal-response.js';
import type { HandshakeRequest, SocketChecks } from './socket-checks.js';

/** Answers a handshake of ws. */
type Verified = (isAccepted: boolean, status?: number, message?: string, headers?: Record<string, string>) => void;

/** The data that ws has about a handshake. */
interface HandshakeInfo {
  readonly req: HandshakeRequest;
}

type VerifyClient = (info: HandshakeInfo, verified: Verified) => unknown;

/** A client of ws. */
export interface WsClient {
  request?: IncomingMessage | undefined;
  readonly readyState: number;
  emit(event: string | symbol, ...args: unknown[]): boolean;
  send(text: string): void;
  close(code: number, reason: string): void;
}

/** A server of ws. */
export interface WsServer {
  readonly options: { verifyClient?: VerifyClient | null | undefined };
  prependListener(event: 'connection', listener: (client: WsClient, request: HandshakeRequest) => void): unknown;
  on(event: 'headers', listener: (headers: string[], request: object) => void): unknown;
}

/** Limits the handshakes of ws before the app's own `verifyClient`. */
export class WsHandshakes {
  /** The headers of admitted handshakes. */
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

/** Calls the app's own function, if there is one. */
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
