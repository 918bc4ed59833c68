import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { npm, PACKAGE_FOLDER } from './npm.js';

/** What the compiler writes, and the last file that is made of it. */
const BUILT = ['build/index.js', 'dist/cjs/package.json'].map((path) => join(PACKAGE_FOLDER, path));

/** Builds the package for the processes of a test that import it, unless that was done before. */
export async function ensureBuilt(): Promise<void> {
  if (!BUILT.every((path) => existsSync(path))) await npm(['run', 'build'], PACKAGE_FOLDER, 500_000);
}
