import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const SERVERS = ['redis-server', 'valkey-server'];

/** System package managers that can install a server without asking anything. All of them need root. */
const INSTALLERS = [
  {
    manager: 'apt-get',
    commands: [
      ['update', '-qq'],
      ['install', '-y', '-qq', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=120', 'redis-server'],
    ],
  },
  { manager: 'apk', commands: [['add', '--quiet', '--no-cache', 'redis']] },
  { manager: 'dnf', commands: [['install', '-y', '-q', 'redis']] },
];

export const WHAT_TO_INSTALL =
  'The tests need a real Redis: install redis-server or valkey-server so that it is on the PATH ' +
  '(Debian: apt-get install redis-server, macOS: brew install redis), or set REDIS_URL.';

/** The path of the server program, or undefined. */
export function findRedisServer() {
  const known = process.env.TEST_REDIS_SERVER;
  if (known) return known;
  for (const name of SERVERS) {
    const path = findOnPath(name);
    if (path) return path;
  }
  return undefined;
}

/** The path of the command-line client that belongs to a server program. */
export function clientOf(server) {
  return server.replace(/-server$/, '-cli');
}

/** The path of a server program, installed with the system's package manager if there is none and that is allowed. */
export function ensureRedisServer() {
  const found = findRedisServer() ?? installed();
  if (!found) throw new Error(WHAT_TO_INSTALL);
  return found;
}

function installed() {
  if (process.getuid?.() !== 0) return undefined;
  for (const { manager, commands } of INSTALLERS) {
    const program = findOnPath(manager);
    if (!program) continue;
    process.stderr.write(`No redis-server on the PATH: installing one with ${manager}.\n`);
    for (const args of commands) {
      const { status, stderr } = spawnSync(program, args, {
        encoding: 'utf8',
        env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      // A failed update need not be the end: the package lists may be there already. The last command decides.
      if (status !== 0) process.stderr.write(`${manager} ${args[0]} failed: ${stderr?.trim().split('\n').at(-1)}\n`);
    }
    return findRedisServer();
  }
  return undefined;
}

function findOnPath(name) {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not here: the next folder may have it.
    }
  }
  return undefined;
}
