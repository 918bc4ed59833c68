import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';
import { PACK_TIMEOUT_MS, type PackedAnew, packAnew } from '../support/processes/packed-anew.js';
import { brokenLinks } from '../support/pages.js';
import { scripts } from '../support/redis/scripts.js';

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
    'dist/graphql/index.js',
    'dist/graphql/index.d.ts',
    'dist/sockets/index.js',
    'dist/sockets/index.d.ts',
    'dist/store/index.js',
    'dist/store/index.d.ts',
    'dist/mcp/index.js',
    'dist/mcp/index.d.ts',
    'dist/ai/index.js',
    'dist/ai/index.d.ts',
    'dist/throttler-storage/index.js',
    'dist/throttler-storage/index.d.ts',
    'dist/client/index.js',
    'dist/client/index.d.ts',
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
    'dist/cjs/graphql/index.js',
    'dist/cjs/graphql/index.d.ts',
    'dist/cjs/sockets/index.js',
    'dist/cjs/sockets/index.d.ts',
    'dist/cjs/store/index.js',
    'dist/cjs/store/index.d.ts',
    'dist/cjs/mcp/index.js',
    'dist/cjs/mcp/index.d.ts',
    'dist/cjs/ai/index.js',
    'dist/cjs/ai/index.d.ts',
    'dist/cjs/throttler-storage/index.js',
    'dist/cjs/throttler-storage/index.d.ts',
    'dist/cjs/client/index.js',
    'dist/cjs/client/index.d.ts',
    'dist/cjs/package.json',
    'dist/licenses.txt',
    'limits.schema.json',
    'package.json',
    'README.md',
    'LICENSE',
    'CHANGELOG.md',
    'SECURITY.md',
    'SKILL.md',
    'llms.txt',
  ])('has %s', (path) => {
    expect(paths).toContain(path);
  });

  it.each(['dist/shared', 'dist/cjs/shared'])('has the scripts in %s, and not as Lua', (folder) => {
    const codeOf = (name: string) => readFileSync(join(packed.folder, folder, name), 'utf8').replaceAll('\\\n', '');
    const pieces = ['script.js', 'script-2.js'].map((name) => /text="([\w+/=]+)"/.exec(codeOf(name))![1]!);
    // All pieces but the last one are of one length.
    pieces.sort((one, other) => other.length - one.length);
    const script = brotliDecompressSync(Buffer.from(pieces.join(''), 'base64')).toString();
    expect(script === scripts.decisions).toBe(true);
    // Others are escaped there.
    const lines = scripts.overrides.split('\n').filter((line) => !/["'`\\$]/.test(line));
    expect(lines.length).toBeGreaterThan(25);
    expect(lines.filter((line) => !codeOf('overrides.js').includes(line))).toEqual([]);
    expect(paths.filter((name) => name.endsWith('.lua'))).toEqual([]);
  });

  it('has nothing but the build and the documentation', () => {
    const allowed =
      /^(dist|docs|schematics)\/|^(package\.json|limits\.schema\.json|README\.md|LICENSE|CHANGELOG\.md|SECURITY\.md|SKILL\.md|llms\.txt)$/;
    expect(paths.filter((path) => !allowed.test(path))).toEqual([]);
  });

  it('has no tests and no TypeScript sources', () => {
    const source = /\.(spec|test)\.|(?<!\.d)\.[cm]?ts$|tsbuildinfo$/;
    expect(paths.filter((path) => source.test(path))).toEqual([]);
  });

  it('has no pages for work on the library itself', () => {
    expect(
      paths.filter((path) =>
        /^docs\/(decisions|internals|architecture|\.vitepress)|CONTRIBUTING|^\.github|^bench/.test(path),
      ),
    ).toEqual([]);
  });

  it('has no screenshots, which are larger than all else', () => {
    expect(paths.filter((path) => path.endsWith('.png'))).toEqual([]);
    // The chart, and the README's picture; test/docs/browser/picture.long.spec.ts holds it small.
    expect(paths.filter((path) => /\.(?:webp|jpe?g|gif|svg|avif)$/.test(path))).toEqual([
      'docs/benchmarks.svg',
      'docs/picture.webp',
    ]);
  });

  it('has what its pages link to', () => {
    const pages = paths.filter((path) => path.endsWith('.md'));
    expect(pages).toContain('README.md');
    expect(brokenLinks(pages, paths)).toEqual([]);
  });

  it('has nothing left over: only what an entry point or the program loads', () => {
    const inDist = paths.filter((path) => path.startsWith('dist/'));
    const loaded = new Set(inDist.filter((path) => /\/index\.(?:js|d\.ts)$|\/cli\/main\.js$/.test(path)));
    // The loop takes in what is added while it runs.
    for (const path of loaded) {
      const text = readFileSync(join(packed.folder, path), 'utf8');
      for (const [, fileName] of text.matchAll(/\b(?:from|import|require)\s*\(?\s*["'](\.[^"']+)["']/g)) {
        const file = posix.join(posix.dirname(path), fileName!);
        loaded.add(path.endsWith('.d.ts') ? file.replace(/js$/, 'd.ts') : file);
      }
    }
    expect(inDist.toSorted()).toEqual([...loaded, 'dist/cjs/package.json', 'dist/licenses.txt'].toSorted());
  });

  it('has no source maps, and refers to none', () => {
    expect(paths.filter((path) => path.endsWith('.map'))).toEqual([]);
    const code = paths.filter((path) => /^dist\/.*(?:\.js|\.d\.ts)$/.test(path));
    expect(
      code.filter((path) => readFileSync(join(packed.folder, path), 'utf8').includes('sourceMappingURL=')),
    ).toEqual([]);
  });

  it('has the licences of the packages that are bundled', () => {
    const text = readFileSync(join(packed.folder, 'dist/licenses.txt'), 'utf8');
    for (const name of ['cluster-key-slot', 'cockatiel', 'ipaddr.js', 'ms', 'tslib']) {
      expect(text).toMatch(new RegExp(`^${name.replace('.', '\\.')} \\d`, 'm'));
    }
    expect(text.match(/Permission (?:is hereby granted|to use)|Licensed under the Apache License/g)).toHaveLength(5);
  });

  describe('is light', () => {
    it('in bytes and files of its own', () => {
      expect(paths.reduce((sum, path) => sum + statSync(join(packed.folder, path)).size, 0)).toBeLessThan(4_800_000);
      expect(paths.length).toBeLessThan(400);
    });

    it('in its tarball', () => {
      expect(statSync(packed.tarball).size).toBeLessThan(1_350_000);
    });

    it('in what it has installed beside it', () => {
      const { dependencies } = manifestOf(PACKAGE_FOLDER);
      const folders = new Set(Object.keys(dependencies ?? {}));
      // The loop takes in what is added while it runs.
      for (const name of folders) {
        for (const one of Object.keys(manifestOf(join(PACKAGE_FOLDER, 'node_modules', name)).dependencies ?? {}))
          folders.add(one);
      }
      const bytes = [...folders].map((name) => bytesOf(join(PACKAGE_FOLDER, 'node_modules', name)));
      expect(bytes.reduce((sum, each) => sum + each, 0)).toBeLessThan(2_000_000);
    });
  });
});

function bytesOf(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}

function manifestOf(folder: string): { dependencies?: Record<string, string> } {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { dependencies?: Record<string, string> };
}
