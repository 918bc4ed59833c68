import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { npm, PACKAGE_FOLDER } from './npm.js';

/** The last file that a build of the library writes. */
const BUILT = fileURLToPath(new URL('../../dist/cjs/package.json', import.meta.url));

/** Builds the package for the processes of a test that import it, unless that was done before. */
export async function ensureBuilt(): Promise<void> {
  if (!existsSync(BUILT)) await npm(['run', 'build'], PACKAGE_FOLDER, 500_000);
}
