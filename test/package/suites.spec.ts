import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';

/** The spec files that a configuration of Jest names. */
async function specsOf(file: string): Promise<string[]> {
  const { default: config } = (await import(`../../${file}`)) as { default: { testMatch: string[] } };
  return config.testMatch.map((pattern) => pattern.replace('<rootDir>/', ''));
}

describe('configurations of Jest', () => {
  it.each(['jest.unit.config.mjs', 'jest.mutation.config.mjs'])('%s names specs that exist', async (file) => {
    const specs = await specsOf(file);

    expect(specs.length).toBeGreaterThan(10);
    expect(specs.filter((spec) => !existsSync(spec))).toEqual([]);
  });

  it('mutation tests make no store on Redis', async () => {
    const specs = await specsOf('jest.mutation.config.mjs');
    expect(specs.filter((spec) => readFileSync(spec, 'utf8').includes('new RedisStore(redis'))).toEqual([]);
  });
});
