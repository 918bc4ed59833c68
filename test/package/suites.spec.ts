import { existsSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';

/** What a module of plain JavaScript exports. */
const exportsOf = (file: string) => import(`../../${file}`) as Promise<Record<string, unknown>>;

describe('the specs that are named', () => {
  it('by the configuration of unit tests exist', async () => {
    const config = (await exportsOf('jest.unit.config.mjs'))['default'] as { testMatch: string[] };
    const specs = config.testMatch.map((pattern) => pattern.replace('<rootDir>/', ''));

    expect(specs.length).toBeGreaterThan(10);
    expect(specs.filter((spec) => !existsSync(spec))).toEqual([]);
  });

  it('by mutation tests exist', async () => {
    const specs = (await exportsOf('test/support/mutation/specs.mjs'))['SPECS'] as string[];

    expect(specs.length).toBeGreaterThan(10);
    expect(specs.filter((spec) => !existsSync(spec))).toEqual([]);
  });
});
