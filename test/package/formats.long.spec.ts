import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { sourceOf } from '../../bundle/manifest.mjs';
import { ensureBuilt } from '../support/processes/built.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

const ENTRIES = [
  ['.', 'index'],
  ['./testing', 'testing/index'],
  ['./console', 'console/index'],
  ['./outbound', 'outbound/index'],
  ['./bullmq', 'bullmq/index'],
  ['./graphql', 'graphql/index'],
  ['./sockets', 'sockets/index'],
  ['./store', 'store/index'],
  ['./mcp', 'mcp/index'],
  ['./ai', 'ai/index'],
  ['./throttler-storage', 'throttler-storage/index'],
  ['./client', 'client/index'],
] as const;

interface Told {
  same: Record<string, { exports: number; different: string[] }>;
  twins: Record<string, { esm: string[]; commonjs: string[] }>;
  apps: unknown[];
}

const manifest = JSON.parse(readFileSync(join(PACKAGE_FOLDER, 'package.json'), 'utf8')) as {
  exports: Record<string, unknown>;
  typesVersions: { '*': Record<string, string[]> };
};

describe('the entry points', () => {
  beforeAll(() => ensureBuilt(), 120_000);

  it('are these', () => {
    expect(Object.keys(manifest.exports)).toEqual([
      ...ENTRIES.map(([name]) => name),
      './limits.schema.json',
      './package.json',
    ]);
  });

  // Node takes `module-sync` for `require` as well, and bundlers take `module`: so a process has one copy. `require` is
  // for what cannot load an ES module that way.
  it.each(ENTRIES)('%s has one implementation for Node, and CommonJS for what needs it', (name, path) => {
    const esm = `./dist/${path}.js`;
    const commonjs = `./dist/cjs/${path}.js`;
    expect(manifest.exports[name]).toEqual({ import: esm, 'module-sync': esm, module: esm, require: commonjs });
    for (const file of [esm, commonjs]) {
      expect(existsSync(join(PACKAGE_FOLDER, file))).toBe(true);
      expect(existsSync(join(PACKAGE_FOLDER, file.replace(/js$/, 'd.ts')))).toBe(true);
    }
    if (name !== '.') {
      expect(manifest.typesVersions['*'][name.slice(2)]).toEqual([`./dist/cjs/${path}.d.ts`]);
    }
  });

  it('are the same, required or imported', async () => {
    const worker = fork(join(PACKAGE_FOLDER, 'test/package/formats-worker.cjs'), {
      execArgv: [],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const told = once(worker, 'message');
    const [code] = (await once(worker, 'close')) as [number | null];
    expect(code).toBe(0);
    const { same, twins, apps } = (await told)[0] as Told;
    for (const [name] of ENTRIES) {
      expect(same[name]?.exports).toBeGreaterThanOrEqual(
        ['./console', './ai', './throttler-storage'].includes(name) ? 1 : 2,
      );
      expect(same[name]?.different).toEqual([]);
      expect(twins[name]?.commonjs).toEqual(twins[name]?.esm);
    }
    const held = { statuses: [200, 429], refusals: [true], injected: [true, true, true] };
    expect(apps).toEqual([held, held]);
  });

  it('name what they export as the sources do', async () => {
    const sources = await Promise.all(
      ENTRIES.map(([, path]) => import(`../../${sourceOf(path).replace('build', 'lib')}.js`) as Promise<object>),
    );
    // Without what compiled specs add to what they import.
    const load = createRequire(import.meta.url);
    const built = ENTRIES.map(([, path]): object => load(`../../dist/${path}.js`));
    expect(built.map(namesIn)).toEqual(sources.map(namesIn));
  });

  // Nest and stack traces show them.
  it('name no class apart from its variable', () => {
    const dist = join(PACKAGE_FOLDER, 'dist');
    const code = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.js'));
    const classes = code.flatMap((path) => [
      ...readFileSync(join(dist, path), 'utf8').matchAll(/\b(\w+)=(?:\w+=)?class (?!extends\b)(\w+)/g),
    ]);
    expect(classes.length).toBeGreaterThan(30);
    expect(classes.filter(([, variable, name]) => variable !== name).map(([all]) => all)).toEqual([]);
  });
});

function namesIn(exported: object): string[] {
  const names = Object.entries(exported).map(([key, value]) =>
    typeof value === 'function' ? `${key}: ${value.name}` : key,
  );
  return names.toSorted();
}
