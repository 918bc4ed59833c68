import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The folder of this package. */
export const PACKAGE_FOLDER = fileURLToPath(new URL('../../..', import.meta.url));

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

/** Our environment without what `npm test` tells its children about the package and the run they belong to. */
export function ownEnvironment(): NodeJS.ProcessEnv {
  const ofTheRun = /^npm_(package_|lifecycle_|command$|config_local_prefix$)|^INIT_CWD$/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ofTheRun.test(name)));
}
