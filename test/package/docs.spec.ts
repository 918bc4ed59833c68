import { describe, it } from '@jest/globals';
import { npm, PACKAGE_FOLDER } from '../support/npm.js';

describe('the API reference', () => {
  // Rejects with all that is missing or wrong in the doc comments.
  it('is made without a warning', async () => {
    await npm(['run', 'docs', '--', '--emit', 'none'], PACKAGE_FOLDER, 110_000);
  }, 120_000);
});
