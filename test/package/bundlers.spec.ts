import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from '@jest/globals';
import { buildSync, type Format } from 'esbuild';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Packages that every app with the library has installed. */
const INSTALLED = ['rxjs', 'tslib', 'reflect-metadata', 'yaml'];

let folder: string | undefined;
afterEach(async () => {
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

/** Nest itself loads packages that may be missing, so it is left out of the bundle. */
function bundle(format: Format, contents: string): string {
  const { outputFiles } = buildSync({
    stdin: { contents, resolveDir: folder! },
    write: false,
    bundle: true,
    platform: 'node',
    format,
    external: ['@nestjs/common', '@nestjs/core'],
    // So the packages of this repository are not those of the app.
    preserveSymlinks: true,
    logLevel: 'silent',
  });
  return outputFiles[0]!.text;
}

it.each<[Format, string]>([
  ['esm', "import { RateLimitModule } from 'nestjs-sluice'; console.log(RateLimitModule);"],
  ['cjs', "const { RateLimitModule } = require('nestjs-sluice'); console.log(RateLimitModule);"],
])('esbuild bundles an app with none of the optional packages, as %s', async (format, app) => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-bundle-'));
  const packages = join(folder, 'node_modules');
  for (const path of ['nestjs-sluice/dist', 'nestjs-sluice/package.json']) {
    await mkdir(dirname(join(packages, path)), { recursive: true });
    await symlink(join(ROOT, path.replace('nestjs-sluice/', '')), join(packages, path));
  }
  for (const name of INSTALLED) await symlink(join(ROOT, 'node_modules', name), join(packages, name));
  expect(bundle(format, app)).toContain('RateLimitModule');
});
