import { readdirSync, readFileSync } from 'node:fs';
import { join, posix, sep } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PACKAGE_FOLDER } from '../support/npm.js';
import { PACK_TIMEOUT_MS, type PackedAnew, packAnew } from '../support/packed-anew.js';
import { brokenLinks } from '../support/pages.js';

describe('the package', () => {
  let packed: PackedAnew;
  let paths: string[];

  beforeAll(async () => {
    packed = await packAnew();
    ({ paths } = packed);
  }, 2 * PACK_TIMEOUT_MS);

  afterAll(() => packed?.remove());

  it.each([
    'dist/index.js',
    'dist/index.d.ts',
    'dist/testing/index.js',
    'dist/testing/index.d.ts',
    'dist/console/index.js',
    'dist/console/index.d.ts',
    'dist/outbound/index.js',
    'dist/outbound/index.d.ts',
    'dist/bullmq/index.js',
    'dist/bullmq/index.d.ts',
    'dist/cli/main.js',
    'dist/cjs/index.js',
    'dist/cjs/index.d.ts',
    'dist/cjs/testing/index.js',
    'dist/cjs/testing/index.d.ts',
    'dist/cjs/console/index.js',
    'dist/cjs/console/index.d.ts',
    'dist/cjs/outbound/index.js',
    'dist/cjs/outbound/index.d.ts',
    'dist/cjs/bullmq/index.js',
    'dist/cjs/bullmq/index.d.ts',
    'dist/cjs/package.json',
    'limits.schema.json',
    'package.json',
    'README.md',
    'LICENSE',
    'CHANGELOG.md',
    'SECURITY.md',
  ])('has %s', (path) => {
    expect(paths).toContain(path);
  });

  it('has all Lua files', () => {
    const names = readdirSync(join(PACKAGE_FOLDER, 'lua'), { recursive: true, encoding: 'utf8' });
    const lua = names.filter((name) => name.endsWith('.lua')).map((name) => `lua/${name}`);
    expect(lua).not.toEqual([]);
    expect(lua.filter((path) => !paths.includes(path))).toEqual([]);
  });

  it('has nothing but the build, the scripts and the documentation', () => {
    const allowed =
      /^(dist|lua|docs)\/|^(package\.json|limits\.schema\.json|README\.md|LICENSE|CHANGELOG\.md|SECURITY\.md)$/;
    expect(paths.filter((path) => !allowed.test(path))).toEqual([]);
  });

  it('has no tests and no TypeScript sources', () => {
    const source = /\.(spec|test)\.|(?<!\.d)\.[cm]?ts$|tsbuildinfo$/;
    expect(paths.filter((path) => source.test(path))).toEqual([]);
  });

  it('has no pages for work on the library itself', () => {
    expect(
      paths.filter((path) => /^docs\/(decisions|architecture|\.vitepress)|CONTRIBUTING|^\.github/.test(path)),
    ).toEqual([]);
  });

  it('has no screenshots, which are larger than all else', () => {
    expect(paths.filter((path) => path.endsWith('.png'))).toEqual([]);
  });

  it('has what its pages link to', () => {
    const pages = paths.filter((path) => path.endsWith('.md'));
    expect(pages).toContain('README.md');
    expect(brokenLinks(pages, paths)).toEqual([]);
  });

  it('has what is built anew, and nothing that was left over', () => {
    const sources = readdirSync(join(PACKAGE_FOLDER, 'lib'), { recursive: true, encoding: 'utf8' });
    const bundled = join('console', 'page', sep);
    const names = sources
      .filter((name) => name.endsWith('.ts') && !name.startsWith(bundled))
      .map((name) => name.slice(0, -'.ts'.length));
    const required = names.filter((name) => !name.startsWith(`cli${sep}`));
    const built = [
      ...names.map((name) => `dist/${name}`),
      // The program is an ES module only.
      ...required.map((name) => `dist/cjs/${name}`),
    ].flatMap((name) => ['.js', '.js.map', '.d.ts'].map((ending) => name + ending));
    const inDist = paths.filter((path) => path.startsWith('dist/'));
    expect(inDist.toSorted()).toEqual([...built, 'dist/cjs/package.json'].toSorted());
  });

  it('has source maps that hold their sources, and refers to no others', () => {
    const there = new Set(paths);
    for (const path of paths.filter((name) => name.startsWith('dist/'))) {
      const text = readFileSync(join(packed.folder, path), 'utf8');
      if (path.endsWith('.map')) {
        const { sources, sourcesContent } = JSON.parse(text) as { sources: string[]; sourcesContent?: unknown[] };
        expect([path, sourcesContent?.filter((content) => typeof content === 'string').length]).toEqual([
          path,
          sources.length,
        ]);
      } else {
        for (const [, map] of text.matchAll(/^\/\/# sourceMappingURL=(.*)$/gm)) {
          if (!there.has(posix.join(posix.dirname(path), map!))) throw new Error(`${path} refers to ${map}`);
        }
      }
    }
  });
});
