import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { initMessages } from '../../engine/errors/messages/cli.js';
import { InputError } from '../command.js';
import { spawnSync } from 'node:child_process';

const LOCKS: Readonly<Record<string, readonly [program: string, verb: string]>> = {
  'pnpm-lock.yaml': ['pnpm', 'add'],
  'yarn.lock': ['yarn', 'add'],
  'package-lock.json': ['npm', 'install'],
};

/** Installs packages with the project's package manager. */
export class PackageManager {
  private readonly program: string;
  private readonly verb: string;

  /** The package manager of the nearest lock file. In a workspace, that is in a parent folder. */
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

  /** Returns true if it was installed. */
  install(name: string): boolean {
    const { status } = spawnSync(this.program, [this.verb, name], {
      cwd: this.folder,
      stdio: ['ignore', 2, 2],
      shell: process.platform === 'win32',
    });
    return status === 0;
  }
}

/** The files and dependencies of a Nest project. */
export interface ProjectFiles {
  readonly folder: string;
  /** The file of the root module. */
  readonly module: string;
  /** The e2e specs of the project. */
  readonly specs: readonly string[];
  /** The names of its dependencies of any kind. */
  readonly dependencies: ReadonlySet<string>;
}

const KINDS = ['dependencies', 'devDependencies', 'peerDependencies'];
const E2E = /\.e2e[-.](?:spec|test)\.ts$/;

/** Finds the files of a project. Throws `InputError` if there is none. */
export function projectFiles(folder: string, given: string | undefined): ProjectFiles {
  const manifest = jsonOf(join(folder, 'package.json'));
  const dependencies = new Set(KINDS.flatMap((kind) => Object.keys((manifest?.[kind] as object | undefined) ?? {})));
  if (!dependencies.has('@nestjs/core')) throw new InputError(initMessages.noProject(folder));
  const sourceRoot = jsonOf(join(folder, 'nest-cli.json'))?.['sourceRoot'];
  const root = typeof sourceRoot === 'string' ? sourceRoot : 'src';
  const module = join(folder, given ?? join(root, 'app.module.ts'));
  if (!existsSync(module)) throw new InputError(initMessages.noModule(shownPath(folder, module)));
  return { folder, module, specs: [...specsIn(join(folder, 'test')), ...specsIn(dirname(module))], dependencies };
}

/** A path for messages. */
export function shownPath(folder: string, path: string): string {
  return relative(folder, path).replaceAll(sep, '/');
}

function specsIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return files.filter((file) => E2E.test(file) && !file.includes('node_modules')).map((file) => join(folder, file));
}

function jsonOf(path: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
