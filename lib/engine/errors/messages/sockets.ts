import { wrongInput } from '../wording.js';

/** The messages of WebSockets: their handshakes, connections and frames. */
export const socketMessages = {
  noApp: (received: unknown) =>
    wrongInput('rateLimitSockets: first argument', 'the app of NestFactory.create', received),
  noRateLimitModule: () => `rateLimitSockets: RateLimitModule was not found. Add it to the imports of the app`,
  noAdapter: (received: unknown) =>
    wrongInput(
      'rateLimitSockets: second argument',
      'an adapter such as new IoAdapter(app) or new WsAdapter(app)',
      received,
    ),
  limitedTwice: () => `rateLimitSockets: this adapter already has limits. Call it once, with all options`,
  noLimits: () => `rateLimitSockets: expected limits for handshakes, connections or frames, received none`,
  noServer: (adapter: string) =>
    `rateLimitSockets: ${adapter} created a server whose handshakes cannot be limited. Use a socket.io Server that is attached to an HTTP server, or a WebSocketServer of ws`,
  counted: (location: string, limit: string) =>
    `${location}: limit '${limit}' has the option 'count', but handshakes and frames have no outcome. Use a limit without it`,
  measured: (location: string, limit: string) =>
    `${location}: limit '${limit}' has a cost by bytes or duration, but handshakes and frames have no response. Use a limit with another 'cost'`,
  queued: (location: string, limit: string, algo: string) =>
    `${location}: limit '${limit}' has algo '${algo}', but handshakes and frames cannot be delayed. Use a limit that does not delay: gcra allows the same rate`,
  notHeld: (location: string, limit: string, algo: string) =>
    `${location}: limit '${limit}' has algo '${algo}', but connections are held. Use a concurrency limit, and limit how often they are opened by 'handshakes'`,
  held: (location: string, limit: string, algo: string) =>
    `${location}: limit '${limit}' has algo '${algo}'. Use a limit that counts units, and limit open connections by 'connections'`,
  unknownAddresses: () =>
    "rateLimitSockets: a handshake had the header X-Forwarded-For, and how this HTTP adapter reads it is unknown, so limits by address count the address that connects: behind a proxy, all its clients together. Set the option 'address'",
  failed: (what: string) => `rateLimitSockets: the check of a ${what} failed; it was rejected`,
  authenticateFailed: () => `rateLimitSockets: 'authenticate' failed; the handshake was rejected with status 401`,
  verifyFailed: () =>
    `rateLimitSockets: the 'verifyClient' of the app failed; the handshake was rejected with status 500`,
  listenerFailed: () => `rateLimitSockets: a listener of the app failed with a frame`,
  authenticationRequired: () => 'Authentication is required',
  internal: () => 'Internal server error',
  tooManyFrames: () => 'Too many frames',
} as const;
