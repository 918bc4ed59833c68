import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative, sep } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';

/** The districts of `lib/`, each with those that it imports from. */
const DISTRICTS: Readonly<Record<string, readonly string[]>> = {
  engine: [],
  storage: ['engine'],
  app: ['storage', 'engine'],
  nest: ['app', 'storage', 'engine'],
  integrations: ['nest', 'app', 'storage', 'engine'],
  console: ['nest', 'app', 'storage', 'engine'],
  testing: ['nest', 'app', 'storage', 'engine'],
  cli: ['console', 'nest', 'app', 'storage', 'engine'],
};

const ROOT = 'lib';
/** The entry point stands above all layers. */
const ENTRY_POINT = 'index.ts';

/** A program for browsers, which knows of the library only the types of its answers. */
const PAGE = join('console', 'page', sep);
const PAGE_MAY_KNOW = join('console', 'api.ts');
/** How figures, identities and incidents are written: code that the page shares with the program and with alerts. */
const PAGE_MAY_RUN = ['engine/util/figures.ts', 'console/incident-text.ts'];

/** The bundler of the console's page takes it as a text. */
const isPicture = (file: string): boolean => file.endsWith('.svg') && existsSync(join(ROOT, file));

const sources = readdirSync(ROOT, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file));
const files = sources.filter((file) => !file.startsWith(PAGE));
const districtOf = (file: string) => file.split(sep)[0]!;
/** What may import nothing of its own kind: a district, or one of the integrations. */
const roomOf = (file: string) =>
  file
    .split(sep)
    .slice(0, districtOf(file) === 'integrations' ? 2 : 1)
    .join(sep);

const TESTS = 'test';
/** Entry points that apps and authors of stores import. */
const PUBLIC = /^(?:index|testing\/index|testing\/store\/index|console\/index|integrations\/[^/]+\/index)\.ts$/;
/** Maximum number of specs that import an internal file of `lib/`. */
const MOST_INSIDERS = 100;
/** Helpers that re-export internal files, each for one subject: the console, stores without a limiter, usage. */
const MAY_PASS_ON = ['console/console-app.ts', 'support/limits/stores.ts', 'support/limits/usage.ts'].map(normalize);

const found = new Map<string, string[]>();

/** The files of the library that a file imports, types and dynamic imports included. */
function importsOf(file: string): string[] {
  if (!found.has(file)) found.set(file, readImports(file));
  return found.get(file)!;
}

function readImports(file: string): string[] {
  const { importedFiles } = ts.preProcessFile(readFileSync(join(ROOT, file), 'utf8'), true, true);
  return importedFiles
    .map(({ fileName }) => fileName)
    .filter((name) => name.startsWith('.'))
    .map((name) => normalize(join(dirname(file), name.replace(/\.js$/, '.ts'))))
    .map((target) => (sources.includes(`${target}x`) ? `${target}x` : target));
}

/** Imports against the order of the districts, or from one integration into another. */
function arrows(imports: (file: string) => string[]): string[] {
  return files
    .filter((file) => file !== ENTRY_POINT)
    .flatMap((file) => imports(file).map((target) => ({ file, target })))
    .filter(({ file, target }) => roomOf(file) !== roomOf(target))
    .filter(({ file, target }) => !DISTRICTS[districtOf(file)]!.includes(districtOf(target)))
    .map(({ file, target }) => `${file} -> ${target}`);
}

/** Files that import each other in a circle, one circle of each group. */
function circles(imports: (file: string) => string[]): string[][] {
  const done = new Set<string>();
  const circlesFound: string[][] = [];
  const visit = (file: string, path: readonly string[]): void => {
    const start = path.indexOf(file);
    if (start >= 0) {
      circlesFound.push([...path.slice(start), file]);
      return;
    }
    if (done.has(file)) return;
    for (const target of imports(file)) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of sources) visit(file, []);
  return circlesFound;
}

const LOW = join('engine', 'util', 'awaitable.ts');
const HIGH = join('storage', 'stores', 'store.ts');

/** The imports as they are, with two more that close a circle. */
function withCircle(file: string): string[] {
  const added = new Map([
    [LOW, HIGH],
    [HIGH, LOW],
  ]).get(file);
  return added === undefined ? importsOf(file) : [...importsOf(file), added];
}

/** What the page imports from outside its folder, or would import when it runs. */
function importsOfPage(): string[] {
  return sources
    .filter((file) => file.startsWith(PAGE))
    .flatMap((file) =>
      importsOf(file)
        .filter((target) => !target.startsWith(PAGE) && !PAGE_MAY_RUN.includes(target))
        .map((target) => ({ file, target, typesOnly: onlyTypesOf(file, target) })),
    )
    .filter(({ target, typesOnly }) => target !== PAGE_MAY_KNOW || !typesOnly)
    .map(({ file, target }) => `${file} -> ${target}`);
}

function onlyTypesOf(file: string, target: string): boolean {
  const { statements } = ts.createSourceFile(file, readFileSync(join(ROOT, file), 'utf8'), ts.ScriptTarget.Latest);
  return statements
    .filter((statement) => ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement))
    .filter(({ moduleSpecifier }) => moduleSpecifier && ts.isStringLiteral(moduleSpecifier))
    .filter(({ moduleSpecifier }) => {
      const name = (moduleSpecifier as ts.StringLiteral).text;
      return normalize(join(dirname(file), name.replace(/\.js$/, '.ts'))) === target;
    })
    .every((statement) => (ts.isImportDeclaration(statement) ? statement.importClause : statement)?.isTypeOnly);
}

const tests = readdirSync(TESTS, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));

/** The internal files of `lib/` among the modules that a test imports. */
const internalFiles = (file: string, names: readonly string[]): string[] =>
  names
    .map((name) => relative(ROOT, join(TESTS, dirname(file), name)).replace(/\.js$/, '.ts'))
    .filter((target) => sources.includes(target) && !PUBLIC.test(target));

const sourceOfTest = (file: string): string => readFileSync(join(TESTS, file), 'utf8');

const importsOfTest = (file: string): string[] =>
  ts.preProcessFile(sourceOfTest(file), true, true).importedFiles.map(({ fileName }) => fileName);

/** Specs that import internal files. */
const insiders = (imports: (file: string) => string[]): string[] =>
  tests.filter((file) => file.endsWith('.spec.ts') && internalFiles(file, imports(file)).length > 0);

describe('the specs', () => {
  const known = insiders(importsOfTest);

  it('import internal files of lib/ in at most 100 cases', () => {
    expect(known.length).toBeLessThanOrEqual(MOST_INSIDERS);
  });

  it('get internal files re-exported by no helper but the three known ones', () => {
    const passingOn = tests.filter((file) => {
      const names = [...sourceOfTest(file).matchAll(/^export (?:type )?[{*][^;]* from '(.+)';$/gm)].map(
        ([, name]) => name!,
      );
      return internalFiles(file, names).length > 0;
    });
    expect(passingOn.toSorted()).toEqual(MAY_PASS_ON);
  });

  it('are counted if they import an internal file, not if they import an entry point', () => {
    const [file] = tests.filter((each) => each.endsWith('.spec.ts') && !known.includes(each));
    const toRoot = relative(dirname(join(TESTS, file!)), ROOT);
    const withOne = (name: string) =>
      insiders((each) => [...importsOfTest(each), ...(each === file ? [join(toRoot, name)] : [])]);
    expect(withOne('engine/util/awaitable.js')).toHaveLength(known.length + 1);
    expect(withOne('testing/store/index.js')).toHaveLength(known.length);
  });
});

describe('the districts of lib/', () => {
  it('names every folder', () => {
    const folders = new Set(files.filter((file) => file.includes(sep)).map(districtOf));
    expect([...folders].toSorted()).toEqual(Object.keys(DISTRICTS).toSorted());
    expect(files.filter((file) => !file.includes(sep))).toEqual([ENTRY_POINT]);
  });

  it('has no import of a file that is not there', () => {
    const missing = sources.flatMap((file) =>
      importsOf(file)
        .filter((target) => !sources.includes(target) && !isPicture(target))
        .map((target) => `${file} -> ${target}`),
    );
    expect(missing).toEqual([]);
  });

  it('has no arrow that runs up', () => expect(arrows(importsOf)).toEqual([]));

  it('has no circle, not even of types, nor has the page', () => expect(circles(importsOf)).toEqual([]));

  it('has no import of the entry point', () => {
    const barrels = files.filter((file) => importsOf(file).some((target) => target === ENTRY_POINT));
    expect(barrels).toEqual([]);
  });

  it('has a page that knows only the types of its answers, and how they are written', () =>
    expect(importsOfPage()).toEqual([]));

  it('finds an arrow that runs up and a circle where there are some', () => {
    expect(arrows(withCircle)).toEqual([`${LOW} -> ${HIGH}`]);
    expect(circles(withCircle)).toContainEqual(expect.arrayContaining([LOW, HIGH]));
  });
});
