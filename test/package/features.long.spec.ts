import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ownEnvironment } from '../support/processes/npm.js';
import { copyPackage, featureFolders, leaveOut, putBack } from '../support/processes/without-feature.js';

const run = promisify(execFile);

/** What holds of the core: on both stores, in code and on routes. */
const CORE_SPECS = ['storage/contract/all-or-nothing', 'storage/contract/claims', 'e2e/routes'];
/** What was found of the types of one copy holds of the next one, where nothing has changed. */
const TSC = 'node_modules/.bin/tsc --noEmit --checkers 1 --incremental --tsBuildInfoFile types -p tsconfig.build.json';

const features = featureFolders();

describe('the library', () => {
  let copy: string;
  beforeAll(async () => {
    copy = await mkdtemp(join(tmpdir(), 'sluice-features-'));
    await copyPackage(copy);
    for (const feature of features) await leaveOut(feature, copy);
  });
  afterAll(() => rm(copy, { recursive: true, force: true }));

  const node = (args: string) =>
    run(process.execPath, args.split(' '), {
      cwd: copy,
      env: { ...ownEnvironment(), TEST_TIER: 'all', TEST_COVERAGE: undefined },
    });

  it('compiles without any feature', async () => {
    expect(features).toEqual(
      expect.arrayContaining([
        'lib/storage/features/usage',
        'lib/engine/algorithms/plan',
        'lib/engine/algorithms/warm-up',
      ]),
    );
    await expect(node(TSC)).resolves.toMatchObject({ stdout: '' });
  });

  it('decides as before without any feature', async () => {
    await node('lua/embed.mjs');
    const specs = CORE_SPECS.map((name) => `test/${name}.spec.ts`).join(' ');
    await expect(node(`node_modules/jest/bin/jest.js --runInBand ${specs}`)).resolves.toBeDefined();
  });

  it.each(features)('compiles without %s', async (feature) => {
    await putBack(copy);
    await leaveOut(feature, copy);
    await expect(node(TSC)).resolves.toMatchObject({ stdout: '' });
  });
});
