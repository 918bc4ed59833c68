import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { problemsOfSite } from '../../docs/.vitepress/check-links.mjs';
import { npm, PACKAGE_FOLDER } from '../support/processes/npm.js';

describe('the API reference', () => {
  // Rejects with all that is missing or wrong in the doc comments.
  it('is made without a warning, and its links lead somewhere', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-api-'));
    try {
      await npm(['run', 'docs:api', '--', '--out', folder], PACKAGE_FOLDER, 500_000);
      expect(existsSync(join(folder, 'index.html'))).toBe(true);
      expect(problemsOfSite(folder)).toEqual([]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
