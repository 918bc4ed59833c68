import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll } from '@jest/globals';
import { buildSync } from 'esbuild';

/** What modules of CommonJS ask for. */
const REQUIRE = "import * as commonjs from 'node:module';\nconst require = commonjs.createRequire(import.meta.url);";

/** What Nest loads if it is there, and does without. */
const OPTIONAL = ['@nestjs/microservices*', '@nestjs/websockets*', 'class-transformer*', 'class-validator'];

/**
 * A script of this folder, for processes of a spec, as one file with the built package and the packages that both import: a process
 * takes a quarter of the CPU to load it. The file is made when it is first asked for, and goes with the spec.
 */
export function bundledWorker(name: string): () => Promise<string> {
  let folder: Promise<string> | undefined;
  afterAll(async () => {
    if (folder !== undefined) await rm(await folder, { recursive: true, force: true });
  });
  return async () => join(await (folder ??= bundle(name)), name);
}

async function bundle(name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-worker-'));
  // Not `build`, which keeps a process.
  buildSync({
    entryPoints: [fileURLToPath(new URL(name, import.meta.url))],
    outfile: join(folder, name),
    bundle: true,
    platform: 'node',
    format: 'esm',
    external: OPTIONAL,
    keepNames: true,
    banner: { js: REQUIRE },
    logLevel: 'error',
  });
  return folder;
}
