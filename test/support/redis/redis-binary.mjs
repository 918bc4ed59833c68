import { findOnPath, install } from '../processes/system-programs.mjs';

const PACKAGES = { 'apt-get': ['redis-server'], apk: ['redis'], dnf: ['redis'] };

export const WHAT_TO_INSTALL =
  'The tests need a real Redis: install redis-server or valkey-server so that it is on the PATH ' +
  '(Debian: apt-get install redis-server, macOS: brew install redis), or set REDIS_URL.';

/** The path of the server program, or undefined. */
export function findRedisServer() {
  return process.env.TEST_REDIS_SERVER || findOnPath('redis-server', 'valkey-server');
}

/** The path of the command-line client that belongs to a server program. */
export function clientOf(server) {
  return server.replace(/-server$/, '-cli');
}

/** The path of a server program, installed with the system's package manager if there is none and that is allowed. */
export function ensureRedisServer() {
  if (!findRedisServer()) install('redis-server', PACKAGES);
  const found = findRedisServer();
  if (!found) throw new Error(WHAT_TO_INSTALL);
  return found;
}
