import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { VERSION } from '../../lib/storage/telemetry/version.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

it('the version that is told is that of the package', () => {
  const { version } = JSON.parse(readFileSync(join(PACKAGE_FOLDER, 'package.json'), 'utf8')) as { version: string };
  expect(VERSION).toBe(version);
});
