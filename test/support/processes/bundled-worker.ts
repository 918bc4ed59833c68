import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll } from '@jest/globals';
import { buildSync } from 'esbuild';

/** What modules of CommonJS ask for. */
const REQUIRE = "import * as commonjs from 'node:module';\nconst require = commonjs.createRequire(import.meta.url);";

/** What Nest loads if it is there, and does without. */
const OPTIONAL = ['@nestjs/microservices*', '@nestjs/websockets*', 'class-transformer*', 'class-validator'];

const NAME = 'worker.mjs';

/**
 * A script, for processes of a spec, as one file with the built package and the packages that both import: a process takes a quarter
 * of the CPU to load it. The file is made when it is first asked for, and goes with the spec.
 *
 * @param path from this folder
 */
export function bundledWorker(path: string): () => Promise<string> {
  let folder: Promise<string> | undefined;
  afterAll(async () => {
    if (folder !== undefined) await rm(await folder, { recursive: true, force: true });
  });
  return async () => join(await (folder ??= bundle(path)), NAME);
}

async function bundle(path: string): Promise<string> {
  // Not `build`, which keeps a process.
  const { outputFiles } = buildSync({
    entryPoints: [fileURLToPath(new URL(path, import.meta.url))],
    outfile: NAME,
    write: false,
    bundle: true,
    platform: 'node',
    format: 'esm',
    external: OPTIONAL,
    keepNames: true,
    banner: { js: REQUIRE },
    logLevel: 'error',
  });
  const folder = await mkdtemp(join(tmpdir(), 'sluice-worker-'));
  await writeFile(join(folder, NAME), outputFiles[0]!.contents);
  return folder;
}
