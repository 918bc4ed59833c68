import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from '@jest/globals';
import { ensureBuilt } from '../../support/processes/built.js';
import { PACKAGE_FOLDER } from '../../support/processes/npm.js';
import { runChecks } from './run-checks.mjs';

const page = readFileSync(join(PACKAGE_FOLDER, 'docs/compatibility.md'), 'utf8');
const section = /^## Runtimes$.*?(?=^## )/ms.exec(page)![0];

beforeAll(ensureBuilt);

it('the checks of all runtimes pass on this one, and are those that the documentation names', async () => {
  const program = join(PACKAGE_FOLDER, 'test/package/runtimes/checks/main.mjs');
  const server = process.env['TEST_REDIS_URL']!;
  const outcomes = await runChecks({ command: process.execPath }, program, PACKAGE_FOLDER, server);

  expect(outcomes.filter(({ error }) => error !== undefined)).toEqual([]);
  expect([...section.matchAll(/^- `(.+)`$/gm)].map(([, name]) => name)).toEqual(outcomes.map(({ name }) => name));
  for (const [, passed, all] of section.matchAll(/^\| Node.*\| (\d+) of (\d+) /gm)) {
    expect([Number(passed) <= Number(all), Number(all)]).toEqual([true, outcomes.length]);
  }
}, 400_000);
