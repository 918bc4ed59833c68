import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ensureBuilt } from '../support/processes/built.js';
import { findGo } from '../support/processes/go-binary.mjs';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';
import { ensurePython } from '../support/processes/python-binary.mjs';

const run = promisify(execFile);
const VECTORS = join(PACKAGE_FOLDER, 'vectors');
const folder = mkdtempSync(join(tmpdir(), 'vectors-'));
const script = join(folder, 'sluice.lua');
const redisUrl = process.env['TEST_REDIS_URL']!;
const go = findGo();

beforeAll(async () => {
  await ensureBuilt();
  const { stdout } = await run(process.execPath, [join(PACKAGE_FOLDER, 'dist/cli/main.js'), 'call', '--script'], {
    maxBuffer: 10 ** 7,
  });
  writeFileSync(script, stdout);
}, 600_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the vectors in other languages', () => {
  it('are what Python receives from the script', async () => {
    const { stdout } = await run(ensurePython(), [join(VECTORS, 'run.py'), script, redisUrl]);
    expect(stdout).toMatch(/^[1-9]\d{2,} steps, 0 different\n$/);
  }, 300_000);

  const itWithGo = go === undefined ? it.skip : it;
  itWithGo(
    'are what Go receives from the script',
    async () => {
      const env = { ...process.env, GOCACHE: join(folder, 'cache'), GO111MODULE: 'off' };
      const args = ['run', 'run.go', script, new URL(redisUrl).host];
      const { stdout } = await run(go!, args, { cwd: VECTORS, env });
      expect(stdout).toMatch(/^[1-9]\d{2,} steps, 0 different\n$/);
    },
    300_000,
  );
});
