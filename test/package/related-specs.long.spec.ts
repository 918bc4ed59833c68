import { execFile } from 'node:child_process';
import { relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';

/** The specs that `npm run test:watch` tries when a file has changed. */
async function specsOf(file: string): Promise<string[]> {
  const jest = ['node_modules/jest/bin/jest.js', '--listTests', '--findRelatedTests', file];
  const { stdout } = await promisify(execFile)(process.execPath, jest, { env: { ...process.env, TEST_TIER: 'all' } });
  const paths = stdout.trim().split('\n');
  return paths.map((path) => relative('', path).replaceAll(sep, '/'));
}

describe('a changed file of the library', () => {
  it('is tried by the specs that import it, directly or not, and by no others', async () => {
    const specs = await specsOf('lib/engine/limits/money.ts');

    expect(specs).toContain('test/engine/limits/money.spec.ts');
    expect(specs).toContain('test/nest/reservations.spec.ts');
    // It takes nothing from an entry point, which would import every file.
    expect(specs).not.toContain('test/nest/request/reported-promises.spec.ts');
  });
});
