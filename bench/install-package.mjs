/** Installs the package as `npm pack` makes it, so that what is timed is what users get, by its public names only. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = fileURLToPath(new URL('..', import.meta.url));
const target = fileURLToPath(new URL('node_modules/nestjs-sluice', import.meta.url));

/**
 * Its dependencies and peers are found in the `node_modules` of the root, as an app has only one of each.
 * @returns the bytes of the tarball
 */
export async function installPackage() {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
  try {
    await run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: root });
    const [tarball] = await readdir(folder);
    const { size } = await stat(join(folder, tarball));
    await rm(target, { recursive: true, force: true });
    await mkdir(target, { recursive: true });
    await run('tar', ['-xzf', join(folder, tarball), '-C', target, '--strip-components=1']);
    return size;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
