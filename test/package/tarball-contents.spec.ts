import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { pack, PACKAGE_FOLDER } from '../support/npm.js';

describe('the package', () => {
  let paths: string[];

  beforeAll(async () => {
    paths = (await pack('--dry-run')).files.map(({ path }) => path);
  }, 60_000);

  it.each([
    'dist/index.js',
    'dist/index.d.ts',
    'dist/testing/index.js',
    'dist/testing/index.d.ts',
    'package.json',
    'README.md',
    'LICENSE',
    'CHANGELOG.md',
  ])('has %s', (path) => {
    expect(paths).toContain(path);
  });

  it('has all Lua files', () => {
    const names = readdirSync(join(PACKAGE_FOLDER, 'lua'), { recursive: true, encoding: 'utf8' });
    const lua = names.filter((name) => name.endsWith('.lua')).map((name) => `lua/${name}`);
    expect(lua).not.toEqual([]);
    expect(paths).toEqual(expect.arrayContaining(lua));
  });

  it('has nothing but the build, the scripts and the documentation', () => {
    const allowed = /^(dist|lua|docs)\/|^(package\.json|README\.md|LICENSE|CHANGELOG\.md)$/;
    expect(paths.filter((path) => !allowed.test(path))).toEqual([]);
  });

  it('has no tests and no TypeScript sources', () => {
    const source = /\.(spec|test)\.|(?<!\.d)\.[cm]?ts$|tsbuildinfo$/;
    expect(paths.filter((path) => source.test(path))).toEqual([]);
  });
});
