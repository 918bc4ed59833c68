import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const APT_INSTALL = ['install', '-y', '-qq', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=120'];

/** System package managers that can install without asking anything. All of them need root. */
const MANAGERS = {
  'apt-get': (packages) => [
    ['update', '-qq'],
    [...APT_INSTALL, ...packages],
  ],
  apk: (packages) => [['add', '--quiet', '--no-cache', ...packages]],
  dnf: (packages) => [['install', '-y', '-q', ...packages]],
};

/** The path of the first of some programs that stands on the PATH, or undefined. */
export function findOnPath(...names) {
  for (const name of names) {
    for (const folder of (process.env.PATH ?? '').split(delimiter)) {
      const path = join(folder, name);
      try {
        accessSync(path, constants.X_OK);
        return path;
      } catch {
        // Not here: the next folder may have it.
      }
    }
  }
  return undefined;
}

/** Installs a program by the first package manager of the system that `packagesOf` has packages for. Without root it does nothing. */
export function install(program, packagesOf) {
  if (process.getuid?.() !== 0) return;
  for (const [manager, commandsFor] of Object.entries(MANAGERS)) {
    const path = findOnPath(manager);
    const packages = packagesOf[manager];
    if (!path || !packages) continue;
    process.stderr.write(`No ${program} on the PATH: installing one with ${manager}.\n`);
    for (const args of commandsFor(packages)) {
      const { status, stderr } = spawnSync(path, args, {
        encoding: 'utf8',
        env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      // A failed update need not be the end: the package lists may be there already. The last command decides.
      if (status !== 0) process.stderr.write(`${manager} ${args[0]} failed: ${stderr?.trim().split('\n').at(-1)}\n`);
    }
    return;
  }
}
