import { readdirSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { npm, PACKAGE_FOLDER } from './npm.js';
import { packArguments, type PackedPackage, packedPackage } from './packed-package.mjs';

/** Ends only what hangs. */
export const PACK_TIMEOUT_MS = 500_000;

/** What a clone does not have. */
const GENERATED = new Set(['.git', 'node_modules', 'build', 'dist', 'coverage', 'reports', 'site', '.stryker-tmp']);

/** The package, packed after a build of which nothing was there before but a file that is left over. */
export interface PackedAnew extends PackedPackage {
  /** Where it was built. */
  folder: string;
  remove: () => Promise<void>;
}

/** `npm test` has packed it so, and the specs share that; else a clone is made, and packed. */
export async function packAnew(): Promise<PackedAnew> {
  const shared = process.env['TEST_PACKED'];
  if (shared !== undefined) {
    return { ...(JSON.parse(shared) as PackedPackage), folder: PACKAGE_FOLDER, remove: () => Promise.resolve() };
  }
  const destination = await mkdtemp(join(tmpdir(), 'sluice-packed-'));
  const remove = () => rm(destination, { recursive: true, force: true });
  try {
    const folder = join(destination, 'clone');
    await mkdir(join(folder, 'dist'), { recursive: true });
    for (const name of readdirSync(PACKAGE_FOLDER).filter((entry) => !GENERATED.has(entry))) {
      await cp(join(PACKAGE_FOLDER, name), join(folder, name), { recursive: true, filter: isSource });
    }
    await symlink(join(PACKAGE_FOLDER, 'node_modules'), join(folder, 'node_modules'));
    await writeFile(join(folder, 'dist/left-over.js'), '');
    const told = await npm(packArguments(destination), folder, PACK_TIMEOUT_MS);
    return { ...packedPackage(told, destination), folder, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

function isSource(path: string): boolean {
  return !/[\\/](?:node_modules|dist)$/.test(path);
}
