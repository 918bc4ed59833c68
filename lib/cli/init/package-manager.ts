import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

const LOCKS: Readonly<Record<string, readonly [program: string, verb: string]>> = {
  'pnpm-lock.yaml': ['pnpm', 'add'],
  'yarn.lock': ['yarn', 'add'],
  'package-lock.json': ['npm', 'install'],
};

/** Installs packages as a project does. */
export class PackageManager {
  private readonly program: string;
  private readonly verb: string;

  /** The package manager whose lock file is nearest; that of a workspace stands above its projects. */
  constructor(private readonly folder: string) {
    let found: readonly [string, string] = ['npm', 'install'];
    for (let at = folder; ; at = dirname(at)) {
      const lock = Object.keys(LOCKS).find((name) => existsSync(join(at, name)));
      if (lock !== undefined) found = LOCKS[lock]!;
      if (lock !== undefined || dirname(at) === at) break;
    }
    [this.program, this.verb] = found;
  }

  /** The command that installs a package. */
  command(name: string): string {
    return `${this.program} ${this.verb} ${name}`;
  }

  /** Returns whether it was installed. */
  install(name: string): boolean {
    const { status } = spawnSync(this.program, [this.verb, name], {
      cwd: this.folder,
      stdio: ['ignore', 2, 2],
      shell: process.platform === 'win32',
    });
    return status === 0;
  }
}
