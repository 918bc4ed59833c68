import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { ensureBuilt } from '../support/processes/built.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

/** What a file imports: at once, and when it is needed. */
interface Imports {
  readonly atOnce: string[];
  readonly later: string[];
}

/** Parsing takes a while: once each. */
const known = new Map<string, Imports>();

const NEST = ['@nestjs/common', '@nestjs/core', 'reflect-metadata', 'rxjs'];
/** Each entry point, how many files it loads at most, which packages in addition to those of Nest, and which when they are used. */
const ENTRIES = [
  ['index.js', 14, []],
  ['testing/index.js', 14, []],
  ['console/index.js', 21, []],
  ['outbound/index.js', 14, [], ['axios']],
  ['bullmq/index.js', 14, []],
  ['graphql/index.js', 14, ['graphql']],
  ['sockets/index.js', 14, []],
  ['store/index.js', 14, []],
  ['mcp/index.js', 14, []],
  ['ai/index.js', 14, []],
  ['throttler-storage/index.js', 14, []],
] as const;
/** What only some apps use is loaded when it is used. */
const LATER = [
  '@modelcontextprotocol/server',
  '@nestjs/microservices',
  '@nestjs/websockets',
  '@opentelemetry/api',
  'ioredis',
];

beforeAll(() => ensureBuilt(), 120_000);

describe.each(['', 'cjs/'])('the files of dist/%s', (format) => {
  it.each(ENTRIES)(
    '%s loads few files, and of packages those of Nest',
    (entry, most, own, ownLater: readonly string[] = []) => {
      const { files, packages, later } = loadedWith(format + entry);
      expect(files.length).toBeLessThanOrEqual(most);
      expect(packages).toEqual([...NEST, ...own].toSorted());
      expect(later).toEqual([...LATER, ...ownLater].toSorted());
      expect(files.filter((file) => file.endsWith('index.js'))).toEqual([format + entry]);
      expect(files.filter((file) => /\bcli\b|\.command\./.test(file))).toEqual([]);
    },
  );

  it('index.js loads later what few apps use', () => {
    const { filesLater } = loadedWith(`${format}index.js`);
    expect(filesLater).toEqual(
      ['explainer', 'policies', 'redis.override-store', 'region.store', 'script.generated'].map(
        (file) => `${format}shared/${file}.js`,
      ),
    );
  });

  it('client/index.js is one file that loads nothing, so browsers can', () => {
    expect(loadedWith(`${format}client/index.js`)).toEqual({
      files: [`${format}client/index.js`],
      packages: [],
      later: [],
      filesLater: [],
    });
  });
});

// A bundle as an ES module has no `require`.
it('the ES modules require nothing', () => {
  const { files } = loadedWith('console/index.js');
  const more = [...files, ...ENTRIES.map(([entry]) => entry), 'cli/main.js'];
  expect(more.filter((file) => /\brequire\(/.test(readFileSync(join(PACKAGE_FOLDER, 'dist', file), 'utf8')))).toEqual(
    [],
  );
});

describe('the program', () => {
  const OF_APPS = 'shared/app.commands.js';
  const OTHERS = ['check', 'init', 'migrate', 'simulate'].map((name) => `shared/${name}.command.js`);
  const COMMANDS = [OF_APPS, ...OTHERS];

  it('loads nothing of Nest at its start, and its commands when they are given', () => {
    const { files, packages, later, filesLater } = loadedWith('cli/main.js');
    expect({ packages, later }).toEqual({ packages: [], later: [] });
    expect(files.length).toBeLessThanOrEqual(8);
    expect(filesLater).toEqual(COMMANDS);
  });

  it.each(COMMANDS)('loads nothing of Nest with %s', (command) => {
    const { packages, filesLater } = loadedWith(command);
    expect(packages).toEqual([]);
    expect(filesLater).toEqual(
      command === OF_APPS ? ['shared/in-regions.js', 'shared/observer-app.js', 'shared/route-list.js'] : [],
    );
  });
});

/** The files that are loaded with one of dist/, and the packages that all of them import. */
function loadedWith(entry: string) {
  const loaded = new Set([entry]);
  const [packages, later, filesLater] = [new Set<string>(), new Set<string>(), new Set<string>()];
  // The loop takes in what is added while it runs.
  for (const file of loaded) {
    const imports = known.get(file) ?? importsOf(file);
    known.set(file, imports);
    const pathOf = (name: string) => posix.join(posix.dirname(file), name);
    for (const name of imports.atOnce) {
      if (name.startsWith('.')) loaded.add(pathOf(name));
      else packages.add(packageOf(name));
    }
    for (const name of imports.later) {
      if (name.startsWith('.')) filesLater.add(pathOf(name));
      else later.add(packageOf(name));
    }
  }
  return {
    files: [...loaded],
    packages: ownPackages(packages),
    later: ownPackages(later),
    filesLater: [...filesLater].toSorted(),
  };
}

function importsOf(file: string): Imports {
  const source = readFileSync(join(PACKAGE_FOLDER, 'dist', file), 'utf8');
  return file.startsWith('cjs/') ? requiredBy(source) : importedBy(file, source);
}

function importedBy(file: string, source: string): Imports {
  const atOnce: string[] = [];
  const later: string[] = [];
  const visit = (node: ts.Node): void => {
    if ((ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier) {
      atOnce.push((node.moduleSpecifier as ts.StringLiteral).text);
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      const [name] = node.arguments;
      if (name !== undefined && ts.isStringLiteral(name)) later.push(name.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, source, ts.ScriptTarget.Latest));
  return { atOnce, later };
}

/** What is required later stands in a function that a promise calls. */
function requiredBy(source: string): Imports {
  const later = /\.then\(\(\)=>\s*__toESM\(\s*require\(\s*"([^"]+)"/g;
  const names = (pattern: RegExp) => [...source.matchAll(pattern)].map(([, name]) => name!);
  const all = names(/\brequire\(\s*"([^"]+)"/g);
  const lazy = names(later);
  return { atOnce: all.filter((name) => !lazy.includes(name)), later: lazy };
}

/** Nest's files are in its packages, and Node's own need not be loaded. */
function packageOf(name: string): string {
  return name.split('/', name.startsWith('@') ? 2 : 1).join('/');
}

function ownPackages(names: ReadonlySet<string>): string[] {
  return [...names].filter((name) => !name.startsWith('node:')).toSorted();
}
