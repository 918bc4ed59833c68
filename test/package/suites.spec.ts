import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { sep } from 'node:path';
import { describe, expect, it } from '@jest/globals';

/** What a module of plain JavaScript exports. */
const exportsOf = (file: string) => import(`../../${file}`) as Promise<Record<string, unknown>>;

describe('the specs that are named', () => {
  it('by the configuration of unit tests exist, and start nothing', async () => {
    const config = (await exportsOf('jest.unit.config.mjs'))['default'] as { testMatch: string[] };
    const specs = config.testMatch.map((pattern) => pattern.replace('<rootDir>/', ''));

    expect(specs.length).toBeGreaterThan(10);
    expect(specs.filter((spec) => !existsSync(spec))).toEqual([]);
    const STARTING =
      /\b(?:connectRedis|startRedis|startCluster|startSentinel|startSample|browserOfSpec)\(|\bTEST_REDIS_URL\b/;
    expect(specs.filter((spec) => STARTING.test(readFileSync(spec, 'utf8')))).toEqual([]);
  });

  it('as the longest exist', async () => {
    const longest = (await exportsOf('test/support/jest/longest-first.mjs'))['LONGEST'] as string[];
    const specs = readdirSync('test', { recursive: true, encoding: 'utf8' }).map((path) => sep + path);

    expect(longest.length).toBeGreaterThan(10);
    expect(longest.filter((name) => !specs.some((spec) => spec.endsWith(name)))).toEqual([]);
  });

  it('by mutation tests exist', async () => {
    const specs = (await exportsOf('test/support/mutation/specs.mjs'))['SPECS'] as string[];

    expect(specs.length).toBeGreaterThan(10);
    expect(specs.filter((spec) => !existsSync(spec))).toEqual([]);
  });
});
