import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { algorithms } from '../../lib/algorithms/index.js';
import { features } from '../../lib/features/index.js';
import { prefetch } from '../../lib/features/prefetch/prefetch.js';
import { regions } from '../../lib/features/regions/regions.js';

const read = (file: string): string => readFileSync(file, 'utf8');
const PAGES = ['CONTRIBUTING.md', 'docs/architecture.md'];
const textOf = new Map(PAGES.map((page) => [page, read(page)]));
const contributing = textOf.get('CONTRIBUTING.md')!;
const architecture = textOf.get('docs/architecture.md')!;
const { scripts, engines } = JSON.parse(read('package.json')) as {
  scripts: Record<string, string>;
  engines: { node: string };
};

/** Folders of which the pages say something, and files in the root. */
const FOLDERS = ['lib', 'lua', 'test', 'docs', 'playground', 'sample-app', 'bench'];
const NOT_IN_THE_REPOSITORY = ['lib/console/page.generated.ts', 'playground/dist/', 'docs/benchmarks.md'];

/** What stands in backticks, once each. */
function quoted(text: string): string[] {
  const inLines = text.replaceAll(/^```.*?^```/gms, '');
  return [...new Set([...inLines.matchAll(/`([^`\n]+)`/g)].map(([, words]) => words!))];
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => !/(^|\/)(node_modules|dist|cache)\//.test(path))
    .map((path) => join(folder, path));
}

const files = FOLDERS.flatMap(filesIn);
const sources = files.filter(
  (file) => /\.(ts|tsx|mjs|cjs|lua|json)$/.test(file) && !/generated|package-lock/.test(file),
);
const code = [...sources, 'package.json', 'jest.config.mjs', 'stryker.config.mjs'].map(read).join('\n');

/** Paths of the repository; `<name>` and stars stand for any name. */
function paths(text: string): string[] {
  return quoted(text)
    .flatMap((words) => words.split(' '))
    .filter((word) => FOLDERS.some((folder) => word.startsWith(`${folder}/`)))
    .filter((path) => !NOT_IN_THE_REPOSITORY.includes(path));
}

/** The files that a path stands for. */
function filesOf(path: string): string[] {
  if (!/[*<]/.test(path)) return existsSync(path) ? [path] : [];
  const source = path.replaceAll(/[.+?^$(){}|[\]\\]/g, String.raw`\$&`).replaceAll(/<[^>]+>|\*+/g, '[^/]+');
  return files.filter((file) => new RegExp(`^${source}$`).test(file));
}

function isThere(path: string): boolean {
  if (!/[*<]/.test(path))
    return existsSync(path) || files.some((file) => file.startsWith(path) && file.endsWith('.spec.ts'));
  const source = path.replaceAll(/[.+?^$(){}|[\]\\]/g, String.raw`\$&`).replaceAll(/<[^>]+>|\*+/g, '.+');
  return files.some((file) => new RegExp(`^${source.replace(/\/$/, '')}`).test(file));
}

const cells = (line: string): string[] =>
  line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim());

/** The rows of the table under a heading of columns, as the texts of their cells. */
function table(page: string, ...columns: string[]): string[][] {
  const lines = page.split('\n');
  const start = lines.findIndex((line) => line.startsWith('|') && columns.every((name, i) => cells(line)[i] === name));
  if (start === -1) throw new Error(`There is no table of ${columns.join(', ')}`);
  const end = lines.findIndex((line, i) => i > start && !line.startsWith('|'));
  return lines.slice(start + 2, end).map(cells);
}

const plain = (cell: string): string => cell.replaceAll('`', '');

describe.each(PAGES)('what %s says', (page) => {
  const text = textOf.get(page)!;

  it('names files and folders that are there', () => {
    expect(paths(text).length).toBeGreaterThan(10);
    expect(paths(text).filter((path) => !isThere(path))).toEqual([]);
  });

  it('names what is in the code', () => {
    const names = quoted(text).flatMap((words) => words.match(/^[A-Za-z_$][\w$]*(?=$|\(|\.[a-z])/) ?? []);
    expect(names.length).toBeGreaterThan(20);
    expect(names.filter((name) => !code.includes(name))).toEqual([]);
  });

  it('names commands that are there', () => {
    const named = [...text.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name!);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });
});

describe('what CONTRIBUTING.md says', () => {
  it.each(table(contributing, 'what is added', 'example', 'files'))('of %s holds for %s', (_what, example, cell) => {
    const listed = quoted(cell);
    expect(listed.length).toBeGreaterThan(1);
    const names = plain(example);
    expect(listed.filter((path) => !filesOf(path).some((file) => read(file).includes(names)))).toEqual([]);
  });

  it.each(algorithms.names)('of the files of an algorithm holds for %s', (name) => {
    const section = contributing.slice(
      contributing.indexOf('### An algorithm'),
      contributing.indexOf('### A key resolver'),
    );
    const own = quoted(section.slice(0, section.indexOf('**Pure.**'))).filter((path) => path.includes('<name>'));
    const { adapting } = algorithms.get(name)!;
    const wanted = own.filter((path) => adapting === undefined || !path.endsWith('.lua'));
    expect(wanted.map((path) => path.replace('<name>', name)).filter((path) => !existsSync(path))).toEqual([]);
    const everywhere = ['README.md', 'docs/algorithms/README.md', 'docs/.vitepress/sidebar.ts', 'docs/architecture.md'];
    expect(
      everywhere.filter((file) => !contributing.includes('tables get a row') || !read(file).includes(name)),
    ).toEqual([]);
  });

  it('of the scripts names each that people run', () => {
    const steps = new Set([
      'prepack',
      'prepublishOnly',
      'build:lib',
      'build:sample',
      'clean',
      'format',
      'jest',
      'sample',
    ]);
    const listed = table(contributing, 'script', 'what it does').map(([cell]) =>
      plain(cell!).replace(/^npm (run )?/, ''),
    );
    expect(listed.toSorted()).toEqual(
      Object.keys(scripts)
        .filter((name) => !steps.has(name))
        .toSorted(),
    );
  });

  it('of Node is what the package asks for', () => {
    const [, first, second] = /Node ([\d.]+), or ([\d.]+) or newer/.exec(contributing)!;
    expect(engines.node).toBe(`^${first}.0 || >=${second}.0`);
  });

  it('of figures is what the scripts do', () => {
    const reporter = read('test/support/jest/coverage-reporter.mjs');
    expect(contributing).toContain(`${/LEAST_PERCENT = (\d+)/.exec(reporter)![1]} % at least`);
    expect(contributing).toContain('thirty times as many');
    expect(scripts['test:long']).toContain('PROPERTY_RUNS:-30');
  });

  it('of variables of the environment is what the code reads', () => {
    const variables = quoted(contributing).flatMap((words) => words.match(/^[A-Z][A-Z_]{5,}(?==|$)/) ?? []);
    expect(variables.length).toBeGreaterThan(5);
    const reads = `${code}${read('bench/main.mjs')}`;
    expect(variables.filter((name) => !reads.includes(name))).toEqual([]);
  });
});

describe('what docs/architecture.md says', () => {
  it('of the folders is in the order of the layers', () => {
    const layers = /const LAYERS = \[(.*?)\]/s.exec(read('test/package/layers.spec.ts'))![1]!;
    const folders = table(architecture, 'folder', 'knows').map(([folder]) => plain(folder!).replace(/\/$/, ''));
    expect(folders).toEqual([...layers.matchAll(/'([\w-]+)'/g)].map(([, name]) => name));
  });

  it.each(table(architecture, 'capability', 'means', 'who has it'))(
    'of the capability %s holds',
    (cell, _means, who) => {
      const capability = plain(cell);
      const windows = who.startsWith('windows') ? ['fixed-window', 'calendar-window', 'sliding-window'] : [];
      const [having, lacking = ''] = who.split(', not ');
      const named = [...windows, ...quoted(having!)].filter((name) => !quoted(lacking).includes(name));
      const able = algorithms.names.filter((name) => {
        const algorithm = algorithms.get(name)!;
        const variants = Object.values(algorithm.variants ?? {}) as object[];
        return [algorithm, ...variants].some((one) => Reflect.get(one, capability) !== undefined);
      });
      expect(named.toSorted()).toEqual(able.toSorted());
    },
  );

  it('of keys on Redis is the code of each algorithm', () => {
    const codes = table(architecture, 'algorithm', 'code', 'stored as').map(([name, code]) => [
      plain(name!),
      plain(code!),
    ]);
    const shared = algorithms.names.filter((name) => algorithms.get(name)!.adapting === undefined);
    expect(Object.fromEntries(codes)).toEqual(
      Object.fromEntries(shared.map((name) => [name, algorithms.get(name)!.code])),
    );
  });

  it('of the stack is its order', () => {
    const stack = read('lib/nest/store-stack.ts');
    const ofFeatures = 'layersOfFeatures({';
    const below = {
      'instance scope': 'new InstanceScopeStore(',
      prefetch: ofFeatures,
      regions: ofFeatures,
      'refusal cache': 'new RefusalCacheStore(',
      fallback: 'new FallbackStore(',
    };
    const listed = table(architecture, 'layer', 'decides itself').map(([name]) => name!);
    expect(listed.slice(0, 3)).toEqual(['candidates', 'observed', 'lists']);
    expect(listed.slice(3, 8)).toEqual(Object.keys(below));
    const places = Object.values(below).map((text) => stack.indexOf(text));
    expect(places).not.toContain(-1);
    expect(features.filter(({ layer }) => layer !== undefined)).toEqual([prefetch, regions]);
    expect(places).toEqual(places.toSorted((one, other) => one - other));
  });
});
