import { show } from '../wording.js';

/** The messages of WebSockets: their handshakes, connections and frames. */
export const socketMessages = {
  noApp: (got: unknown) => `rateLimitSockets: the first argument is ${show(got)}, wants the app of NestFactory.create`,
  noRateLimitModule: () => `rateLimitSockets: RateLimitModule was not found, wants it among the imports of the app`,
  noAdapter: (got: unknown) =>
    `rateLimitSockets: the second argument is ${show(got)}, wants an adapter such as new IoAdapter(app) or new WsAdapter(app)`,
  limitedTwice: () => `rateLimitSockets: this adapter has limits already, wants one call with all options`,
  noLimits: () => `rateLimitSockets: no limits, wants limits for handshakes, connections or frames`,
  noServer: (adapter: string) =>
    `rateLimitSockets: ${adapter} made a server whose handshakes cannot be limited, wants a Server of socket.io that is attached to an HTTP server, or a WebSocketServer of ws`,
  counted: (location: string, limit: string) =>
    `${location}: limit '${limit}' has a 'count', wants one without: handshakes and frames have no outcome`,
  queued: (location: string, limit: string, algo: string) =>
    `${location}: limit '${limit}' is a ${algo} limit, wants one that does not delay: handshakes and frames are not held back; gcra allows the same rate`,
  notHeld: (location: string, limit: string, algo: string) =>
    `${location}: limit '${limit}' is a ${algo} limit, wants a concurrency limit: connections are held; limit how often they are made by 'handshakes'`,
  held: (location: string, limit: string, algo: string) =>
    `${location}: limit '${limit}' is a ${algo} limit, wants one that counts units; limit open connections by 'connections'`,
  unknownAddresses: () =>
    "rateLimitSockets: a handshake came with X-Forwarded-For, and how this HTTP adapter reads it is unknown, so limits by address count who connects: behind a proxy, all its clients together; wants the option 'address'",
  failed: (what: string) => `rateLimitSockets: the check of a ${what} failed; it was refused`,
  authenticateFailed: () => `rateLimitSockets: 'authenticate' failed; the handshake was refused with status 401`,
  verifyFailed: () =>
    `rateLimitSockets: the 'verifyClient' of the app failed; the handshake was refused with status 500`,
  listenerFailed: () => `rateLimitSockets: a listener of the app failed with a frame`,
  authenticationRequired: () => 'Authentication is required',
  internal: () => 'Internal server error',
  tooManyFrames: () => 'Too many frames',
} as const;
