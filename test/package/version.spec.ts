import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';
import { runHere } from '../cli/run-program.js';

it('the version that is told is that of the package', async () => {
  const { version } = JSON.parse(readFileSync(join(PACKAGE_FOLDER, 'package.json'), 'utf8')) as { version: string };
  expect((await runHere(['--version'])).stdout.trim()).toBe(version);
});
