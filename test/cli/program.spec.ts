import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { ensureBuilt } from '../support/processes/built.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';
import { runProgram } from './run-program.js';

const manifest = JSON.parse(readFileSync(join(PACKAGE_FOLDER, 'package.json'), 'utf8')) as {
  version: string;
  bin: Record<string, string>;
};

const COMMANDS =
  'init, check, simulate, explain, routes, console, migrate, block, unblock, reset, deny, allow, unlist, rates, call';

beforeAll(() => ensureBuilt(), 120_000);

describe('the program', () => {
  it('is the one that the package names', () => {
    expect(manifest.bin).toEqual({ 'nestjs-sluice': './dist/cli/main.js' });
    expect(readFileSync(join(PACKAGE_FOLDER, 'dist/cli/main.js'), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
  });

  it.each(['--help', '-h', 'help'])('tells by %s which commands there are', async (flag) => {
    const { code, stdout, stderr } = await runProgram([flag]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^Usage: nestjs-sluice <command>/);
    expect(stdout).toMatch(/^ {2}check +\w.*\n {2}simulate {2}\w/m);
    expect(stdout).toMatch(/^ {2}explain {3}\w/m);
    expect(stdout).toMatch(/^ {2}migrate {3}\w/m);
  });

  it('tells its version', async () => {
    expect(await runProgram(['--version'])).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: '' });
  });

  it.each([
    ['no command', [], `command: missing, expected one of ${COMMANDS}`],
    ['an unknown command', ['frobnicate'], "unknown command 'frobnicate'"],
    ['a misspelt command', ['simluate'], "unknown command 'simluate'. Did you mean 'simulate'?"],
    ['a property that every object has', ['constructor'], "unknown command 'constructor'"],
    ['a control character', ['\u001B[2J'], "unknown command '\\x1B[2J'"],
  ])('exits with 2 for %s', async (_, args, message) => {
    const { code, stdout, stderr } = await runProgram(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toBe(`nestjs-sluice: ${message}\nsee nestjs-sluice --help\n`);
  });

  it('tells the options of a command, whatever stands beside it', async () => {
    const { code, stdout } = await runProgram(['simulate', '--limit', 'nonsense', '--help']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: nestjs-sluice simulate/);
  });
});

describe('the compiled files', () => {
  it('of the program load nothing of Nest and nothing of Redis, but of the commands that ask an app', () => {
    const entries = [
      'cli/program.js',
      'cli/check/check.command.js',
      'cli/simulate/simulate.command.js',
      'cli/migrate/migrate.command.js',
      'cli/init/init.command.js',
    ];
    const asks = [
      'call/call.command',
      'console/console.command',
      'explain/explain.command',
      'keys/key.commands',
      'lists/list.commands',
      'rates/rates.command',
      'routes/routes.command',
    ].map((file) => normalize(`cli/${file}.js`));
    expect([...filesOf('cli/main.js')]).toEqual(expect.arrayContaining(asks));
    expect([...new Set(entries.flatMap((entry) => packagesOf(entry, new Set(asks))))].toSorted()).toEqual([
      'ipaddr.js',
      'ms',
      'yaml',
    ]);
  });

  it('of the library load nothing of the program', () => {
    const loaded = ['index.js', 'testing/index.js'].flatMap((entry) => [...filesOf(entry)]);
    expect(loaded).toContain(normalize('storage/stores/memory/memory.store.js'));
    expect(loaded.filter((file) => /^cli[\\/]|messages[\\/]cli\./.test(file))).toEqual([]);
  });
});

/** The files that are loaded with one, dynamic imports included. */
function filesOf(entry: string, found = new Set<string>()): Set<string> {
  if (found.has(normalize(entry))) return found;
  found.add(normalize(entry));
  for (const name of importsOf(entry)) if (name.startsWith('.')) filesOf(join(dirname(entry), name), found);
  return found;
}

/** The packages that they load, but for some files and what these load. */
function packagesOf(entry: string, without: ReadonlySet<string>): string[] {
  const files = [...filesOf(entry, new Set(without))].filter((file) => !without.has(file));
  const names = files.flatMap(importsOf).filter((name) => !/^(?:\.|node:)/.test(name));
  return [...new Set(names)].toSorted();
}

function importsOf(file: string): string[] {
  const source = readFileSync(join(PACKAGE_FOLDER, 'build', file), 'utf8');
  return ts.preProcessFile(source, true, true).importedFiles.map(({ fileName }) => fileName);
}
