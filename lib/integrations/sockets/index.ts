/**
 * Limits WebSockets: handshakes before they are upgraded, open connections, and frames, for socket.io and ws.
 * @module nestjs-sluice/sockets
 */
export { bySocket } from './by-socket.js';
export { rateLimitSockets } from './rate-limit-sockets.js';
export type { SocketLimitOptions, SocketLimits } from './socket-options.js';
