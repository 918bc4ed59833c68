import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ensureBuilt } from '../support/processes/built.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

const run = promisify(execFile);
const VECTORS = join(PACKAGE_FOLDER, 'vectors');
/** Inside the repository, where the runner finds its client of Redis. */
const COPY = join(PACKAGE_FOLDER, 'node_modules/.cache', `vectors-${process.pid}`);
const SCRIPT = join(COPY, 'sluice.lua');
const files = readdirSync(VECTORS).filter((name) => name.endsWith('.json'));

const textOf = (name: string) => readFileSync(join(VECTORS, name), 'utf8');
const runner = (folder: string) =>
  run(process.execPath, [join(folder, 'run.mjs'), SCRIPT, process.env['TEST_REDIS_URL']!]);

beforeAll(async () => {
  await ensureBuilt();
  mkdirSync(COPY, { recursive: true });
  const { stdout } = await run(process.execPath, [join(PACKAGE_FOLDER, 'dist/cli/main.js'), 'call', '--script'], {
    maxBuffer: 10 ** 7,
  });
  writeFileSync(SCRIPT, stdout);
}, 600_000);
afterAll(() => rmSync(COPY, { recursive: true, force: true }));

describe('the vectors', () => {
  it('are what the library decides in process', async () => {
    await run(process.execPath, [join(VECTORS, 'generate.mjs'), '--check']);
  });

  it('are what the script decides on Redis', async () => {
    const { stdout } = await runner(VECTORS);
    const programs = files.map((file) => textOf(file).split('"program":').length - 1);
    const steps = programs.reduce((sum, each) => sum + each, 0);
    expect(stdout).toBe(`${steps} steps, 0 different\n`);
    expect(steps).toBeGreaterThan(900);
    expect(readFileSync(join(PACKAGE_FOLDER, 'docs/correctness.md'), 'utf8')).toContain(`${steps} steps, 0 different`);
  });

  it('show a script that decides otherwise', async () => {
    writeFileSync(join(COPY, 'run.mjs'), textOf('run.mjs'));
    // The first of four units: three are left.
    writeFileSync(join(COPY, 'gcra.json'), textOf('gcra.json').replace('"reply":[2001,3]', '"reply":[2001,2]'));
    const failed: unknown = await runner(COPY).catch((error: unknown) => error);
    expect(failed).toMatchObject({
      code: 1,
      stdout: expect.stringContaining(
        'gcra.json: a burst, and one at a time: step 0: expected 2001,2, received 2001,3',
      ),
    });
  });

  it('are there for each algorithm, and for what algorithms have in common', () => {
    const algorithms = readdirSync(join(PACKAGE_FOLDER, 'docs/algorithms')).filter((name) => name !== 'README.md');
    const expected = [...algorithms.map((name) => name.replace('.md', '')), 'all-or-nothing', 'blocks', 'estimates'];
    expect(files.map((name) => name.replace('.json', '')).toSorted()).toEqual(expected.toSorted());
  });

  it('are not in the package', () => {
    const { files: packed } = JSON.parse(readFileSync(join(PACKAGE_FOLDER, 'package.json'), 'utf8')) as {
      files: string[];
    };
    expect(packed.filter((path) => path.includes('vectors'))).toEqual([]);
  });
});
