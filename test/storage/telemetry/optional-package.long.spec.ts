import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, realpath, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PACKAGE_FOLDER } from '../../support/processes/npm.js';
import { runProcesses } from '../../support/processes/run-processes.js';

const WORKER = join(PACKAGE_FOLDER, 'test/support/processes/telemetry-worker.mjs');
const INSTALLED = join(PACKAGE_FOLDER, 'dist/index.js');

interface Manifest {
  dependencies: Record<string, string>;
  peerDependencies: Record<string, string>;
  peerDependenciesMeta: Record<string, { optional: boolean }>;
}

interface Told {
  allowed?: boolean[];
  loaded: number;
  lines?: string[];
  decisions?: Record<string, number>;
  error?: string;
}

/** Folders, manifests and code: declarations and maps are not run. */
function isRun(path: string): boolean {
  return !/\.map$|\.d\.ts$/.test(path);
}

async function run(entry: string, telemetry: boolean | null, sdk = false): Promise<Told> {
  const [told] = await runProcesses<Told>(WORKER, [{ entry, telemetry, sdk }]);
  return told!;
}

describe('@opentelemetry/api', () => {
  let folder: string;
  /** The package where nothing is installed but what it needs. */
  let bare: string;

  beforeAll(async () => {
    if (!existsSync(INSTALLED)) throw new Error('dist/index.js is missing: run `npm run build` before this test.');
    folder = await mkdtemp(join(tmpdir(), 'sluice-bare-'));
    bare = join(folder, 'node_modules/nestjs-sluice/dist/index.js');
    await cp(join(PACKAGE_FOLDER, 'dist'), dirname(bare), { recursive: true, filter: isRun });
    const json = await readFile(join(PACKAGE_FOLDER, 'package.json'), 'utf8');
    await cp(join(PACKAGE_FOLDER, 'package.json'), join(folder, 'node_modules/nestjs-sluice/package.json'));
    const { dependencies, peerDependencies, peerDependenciesMeta } = JSON.parse(json) as Manifest;
    const needed = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true);
    for (const name of [...Object.keys(dependencies), ...needed]) {
      const link = join(folder, 'node_modules', name);
      await mkdir(dirname(link), { recursive: true });
      await symlink(await realpath(join(PACKAGE_FOLDER, 'node_modules', name)), link);
    }
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('is not loaded while the app has not set up its SDK', async () => {
    expect(await run(INSTALLED, null)).toEqual({ allowed: [true, false], loaded: 0, lines: [] });
  });

  it('is not loaded with telemetry: false', async () => {
    expect(await run(INSTALLED, false)).toEqual({ allowed: [true, false], loaded: 0, lines: [] });
  });

  it.each(['dist/index.js', 'dist/cjs/index.js'])('is loaded by %s if the app has set up its SDK', async (entry) => {
    const { allowed, loaded, decisions, lines } = await run(join(PACKAGE_FOLDER, entry), null, true);
    expect({ allowed, decisions, lines }).toEqual({
      allowed: [true, false],
      decisions: { allowed: 1, refused: 1 },
      lines: [],
    });
    expect(loaded).toBeGreaterThan(0);
  });

  it('need not be installed, and nothing is said of it', async () => {
    expect(await run(bare, null)).toEqual({ allowed: [true, false], loaded: 0, lines: [] });
  });

  it('is asked for at start-up with telemetry: true', async () => {
    const { allowed, loaded } = await run(INSTALLED, true);
    expect(allowed).toEqual([true, false]);
    expect(loaded).toBeGreaterThan(0);
    expect(await run(bare, true)).toEqual({
      error:
        "RateLimitConfigError: RateLimitModule: option 'telemetry' is true, but the package '@opentelemetry/api' could not be " +
        'loaded. Install it next to nestjs-sluice',
      loaded: 0,
    });
  });
});
