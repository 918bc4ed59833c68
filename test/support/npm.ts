import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of this package. */
export const PACKAGE_FOLDER = fileURLToPath(new URL('../..', import.meta.url));

interface PackedPackage {
  filename: string;
  files: { path: string }[];
}

/** Runs npm and resolves with what it wrote to stdout. */
export function npm(args: readonly string[], cwd: string, timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { cwd, env: ownEnvironment(), timeout: timeoutMs, maxBuffer: 64 * 1024 * 1024 };
    execFile('npm', args, options, (error, stdout, stderr) => {
      if (error) reject(new Error(`npm ${args[0]} in ${cwd} failed: ${error.message}\n${stdout}\n${stderr}`));
      else resolve(stdout);
    });
  });
}

/** What `npm pack` puts, or would put, into the package. */
export async function pack(...args: string[]): Promise<PackedPackage> {
  if (!existsSync(join(PACKAGE_FOLDER, 'dist/cjs/package.json'))) {
    throw new Error('dist/cjs is missing: run `npm run build` before the package tests.');
  }
  return packed(['--ignore-scripts', ...args], PACKAGE_FOLDER, 110_000);
}

/** The same for the package in a folder, after the scripts that build it anew. What they write is not among the JSON. */
export function buildAndPackIn(folder: string, ...args: string[]): Promise<PackedPackage> {
  return packed(['--foreground-scripts=false', ...args], folder, 170_000);
}

async function packed(args: readonly string[], folder: string, timeoutMs: number): Promise<PackedPackage> {
  const json = await npm(['pack', '--json', ...args], folder, timeoutMs);
  const [first] = Object.values(JSON.parse(json) as Record<string, PackedPackage>);
  if (!first) throw new Error(`npm pack answered ${json}`);
  return first;
}

/** Our environment without what `npm test` tells its children about the package and the run they belong to. */
export function ownEnvironment(): NodeJS.ProcessEnv {
  const ofTheRun = /^npm_(package_|lifecycle_|command$|config_local_prefix$)|^INIT_CWD$/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ofTheRun.test(name)));
}
