import { execFile, spawn } from 'node:child_process';
import { copyFileSync, existsSync, linkSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { npm, ownEnvironment, PACKAGE_FOLDER } from '../support/processes/npm.js';
import {
  generatedSources,
  type NestVersion,
  projectWithLimits,
  writeFiles,
} from '../support/processes/generated-project.js';
import { freePort } from '../support/processes/ports.mjs';
import { PACK_TIMEOUT_MS, type PackedAnew, packAnew } from '../support/processes/packed-anew.js';

const INSTALL_TIMEOUT_MS = 500_000;
const RUN_TIMEOUT_MS = 500_000;

interface Manifest {
  version: string;
  dependencies: Record<string, string>;
}

/** A package of `package-lock.json`. */
interface Locked {
  bin?: unknown;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

const OWN = manifestOf('.');

/** One run with both configurations. */
const VITEST_OF_BOTH = `
import { defineConfig } from 'vitest/config';
const patience = { testTimeout: ${RUN_TIMEOUT_MS}, hookTimeout: ${RUN_TIMEOUT_MS} };
export default defineConfig({
  test: {
    projects: ['vitest.config.ts', 'vitest.config.e2e.ts'].map((name) => ({ extends: name, test: { name, ...patience } })),
  },
});
`;

const ANSWERS = [
  { status: 200, remaining: '"hello";r=1;t=3600', retryAfter: null },
  { status: 200, remaining: '"hello";r=0;t=3600', retryAfter: null },
  { status: 429, remaining: expect.stringContaining('"hello";r=0'), retryAfter: expect.stringMatching(/^3\d{3}$/) },
];

type Step = (folder: string) => Promise<unknown>;

interface Project {
  nest: NestVersion;
  /** What the generated project has in common with us, by the names of the packages. */
  shared: readonly string[];
  /** In the order in which they are taken: some need the build of one before. */
  steps: Record<string, Step>;
}

const RESOLVED = { 'has one copy of Nest, and no ioredis': expectOneNest };
const STARTED = { 'starts, and holds its limits': (folder: string) => expectStart(folder) };

/** Without what no step needs. What is generated ends a test after 5 s, which a busy machine may take. */
const PROJECTS: Record<string, Project> = {
  'nest-11': {
    nest: 11,
    shared: ['jest', 'reflect-metadata', 'rxjs', ...Object.keys(OWN.dependencies)],
    steps: {
      ...RESOLVED,
      'passes its tests': async (folder) => {
        expect(specsOf(await jest(folder, [], ['--json', '--projects', '.', 'test/jest-e2e.json']))).toBe(3);
      },
      'passes Jest that knows ES modules': (folder) =>
        jest(folder, ['--experimental-vm-modules'], ['--config', 'test/jest-e2e.json']),
      'compiles, also with the resolution that knows no exports, its declarations checked': async (folder) => {
        const manifest = await readFile(join(folder, 'node_modules/typescript/package.json'), 'utf8');
        expect((JSON.parse(manifest) as Manifest).version).toMatch(/^5\.7\./);
        const resolution = { module: 'commonjs', moduleResolution: 'node10', resolvePackageJsonExports: false };
        const checks = { skipLibCheck: false, lib: ['ES2023'], types: ['node'], incremental: false, noEmit: true };
        const project = { extends: './tsconfig.build.json', compilerOptions: { ...resolution, ...checks } };
        await writeFile(join(folder, 'tsconfig.node10.json'), JSON.stringify(project));
        // One process, which reads what both have in common once. It ends before optimizing pays.
        const projects = ['tsconfig.build.json', 'tsconfig.node10.json'];
        await node(['--no-opt', 'node_modules/typescript/bin/tsc', '--build', ...projects], folder);
      },
      ...STARTED,
      'starts where require takes no ES modules': (folder) => expectStart(folder, '--no-experimental-require-module'),
      'is set up by one command, from nothing to the first 429': async (folder) => {
        await setUp(folder, 11);
        expect(specsOf(await jest(folder, [], ['--json', '--projects', '.', 'test/jest-e2e.json']))).toBe(2);
        await node(['--no-opt', 'node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], folder);
        expect(await statusesOf(folder)).toEqual([200, 200, 200, 200, 200, 429]);
      },
    },
  },
  'nest-12': {
    nest: 12,
    shared: [
      ...Object.keys(manifestOf('test/package/projects/nest-12').dependencies),
      ...Object.keys(OWN.dependencies),
    ],
    steps: {
      ...RESOLVED,
      'passes its tests': async (folder) => {
        await writeFile(join(folder, 'vitest.both.ts'), VITEST_OF_BOTH);
        const flags = ['--config', 'vitest.both.ts', '--no-isolate', '--reporter=json'];
        expect(specsOf(await node(['node_modules/vitest/vitest.mjs', 'run', ...flags], folder))).toBe(3);
      },
      // The sample is built with TypeScript 6.
      'compiles with TypeScript 7': (folder) =>
        node([join(PACKAGE_FOLDER, 'node_modules/.bin/tsc'), '-p', 'tsconfig.build.json', '--checkers', '1'], folder),
      ...STARTED,
      'is set up by one command, from nothing to the first 429': async (folder) => {
        await symlink(join(PACKAGE_FOLDER, 'node_modules/typescript'), join(folder, 'node_modules/typescript'));
        await setUp(folder, 12);
        const flags = ['--config', 'vitest.both.ts', '--no-isolate', '--reporter=json'];
        expect(specsOf(await node(['node_modules/vitest/vitest.mjs', 'run', ...flags], folder))).toBe(2);
        await node(
          [join(PACKAGE_FOLDER, 'node_modules/.bin/tsc'), '-p', 'tsconfig.build.json', '--checkers', '1'],
          folder,
        );
        expect(await statusesOf(folder)).toEqual([200, 200, 200, 200, 200, 429]);
      },
    },
  },
};

/** Longer than the installations and all steps of a project together: each has a limit of its own. */
const ALL_TIMEOUT_MS = 2 * PACK_TIMEOUT_MS + 2 * INSTALL_TIMEOUT_MS + 10 * RUN_TIMEOUT_MS;

let packed: PackedAnew | undefined;
const folders: string[] = [];
const outcomes = new Map<string, Map<string, PromiseSettledResult<unknown>>>();

beforeAll(async () => {
  packed = await packAnew();
  const { tarball } = packed;
  const installed: string[] = [];
  const runs: Promise<unknown>[] = [];
  try {
    for (const [name, { nest, shared, steps }] of Object.entries(PROJECTS)) {
      const folder = await folderOf(nest, shared);
      await install(folder, tarball, installed[0]);
      installed.push(folder);
      runs.push(takeSteps(folder, steps).then((ends) => outcomes.set(name, ends)));
    }
  } finally {
    await Promise.all(runs);
  }
}, ALL_TIMEOUT_MS);

afterAll(async () => {
  await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })));
  await packed?.remove();
});

/**
 * What the Nest CLI generates is in `projects/new`, what has limits in `projects/limits`, and the settings next to them, without
 * the packages that neither build nor test need: CommonJS, ts-jest and TypeScript 5.7 for Nest 11, ES modules and vitest for Nest 12.
 */
describe.each(Object.keys(PROJECTS))('a generated project of %s', (name) => {
  it.each(Object.keys(PROJECTS[name]!.steps))('%s', (step) => {
    const outcome = outcomes.get(name)!.get(step)!;
    if (outcome.status === 'rejected') throw outcome.reason;
  });
});

/** A copy of a project that has got some packages already, which npm need not unpack. */
async function folderOf(nest: NestVersion, shared: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `sluice-nest-${nest}-`));
  folders.push(folder);
  writeFiles(folder, projectWithLimits(nest));
  for (const path of installedHere(shared)) linkFiles(join(PACKAGE_FOLDER, path), join(folder, path));
  return folder;
}

/**
 * npm unpacks the tarball, and finds out what else is to be installed and where. Another project has the package of the first, of
 * which npm finds out the same.
 */
async function install(folder: string, tarball: string, first: string | undefined): Promise<void> {
  const flags = ['--no-audit', '--no-fund', '--prefer-offline', '--no-package-lock', '--ignore-scripts'];
  const mark = join(folder, 'node_modules/nestjs-sluice/of-the-first-project');
  if (first !== undefined) {
    linkFiles(join(first, 'node_modules/nestjs-sluice'), join(folder, 'node_modules/nestjs-sluice'));
    // npm unpacks anew a package whose program is not linked.
    const program = 'node_modules/.bin/nestjs-sluice';
    await cp(join(first, program), join(folder, program), { verbatimSymlinks: true });
    await writeFile(mark, '');
  }
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest;
  manifest.dependencies['nestjs-sluice'] = first === undefined ? `file:${tarball}` : OWN.version;
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest));
  await npm(['install', ...flags], folder, INSTALL_TIMEOUT_MS);
  if (first !== undefined && !existsSync(mark)) throw new Error('npm installed another package of the same version');
}

/** The folders of packages, and of all they depend on. npm installs what has programs, and links these. */
function installedHere(names: readonly string[]): string[] {
  const lock = readFileSync(join(PACKAGE_FOLDER, 'package-lock.json'), 'utf8');
  const { packages } = JSON.parse(lock) as { packages: Record<string, Locked> };
  const found = new Set<string>();
  const add = (wanted: readonly string[], from: string) => {
    for (const name of wanted) {
      const path = ancestors(from).find((above) => `${above}node_modules/${name}` in packages);
      if (path !== undefined) found.add(`${path}node_modules/${name}`);
    }
  };
  add(names, '');
  // The loop takes in what is added while it runs.
  for (const path of found) {
    const { dependencies, optionalDependencies } = packages[path]!;
    add(Object.keys({ ...dependencies, ...optionalDependencies }), path);
  }
  return [...found].filter((path) => packages[path]!.bin === undefined && existsSync(join(PACKAGE_FOLDER, path)));
}

/** Where Node looks for a package that another needs: within it first, next to it then. */
function ancestors(path: string): string[] {
  const above = path.split('node_modules/').map((_, i, parts) => parts.slice(0, i).join('node_modules/'));
  return [...(path === '' ? [] : [`${path}/`]), ...above.toReversed()];
}

/** Links the files of a package, without the packages in it. Copies them to another disk. */
function linkFiles(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (!entry.isDirectory()) linkFile(source, target);
    else if (entry.name !== 'node_modules') linkFiles(source, target);
  }
}

function linkFile(source: string, target: string): void {
  try {
    linkSync(source, target);
  } catch {
    copyFileSync(source, target);
  }
}

/** One after the other, so that no step waits for the processor with more than those of the other project. */
async function takeSteps(folder: string, steps: Record<string, Step>) {
  const ends = new Map<string, PromiseSettledResult<unknown>>();
  for (const [step, take] of Object.entries(steps)) {
    const [end] = await Promise.allSettled([take(folder)]);
    ends.set(step, end);
  }
  return ends;
}

function jest(folder: string, nodeFlags: readonly string[], flags: readonly string[]): Promise<string> {
  const program = 'node_modules/jest/bin/jest.js';
  return node([...nodeFlags, program, '--runInBand', `--testTimeout=${RUN_TIMEOUT_MS}`, ...flags], folder);
}

/** How many specs ran, by what Jest or vitest tell. A project has one of a unit and two of the whole app. */
function specsOf(json: string): number {
  return (JSON.parse(json) as { testResults: unknown[] }).testResults.length;
}

async function expectStart(folder: string, ...nodeFlags: readonly string[]): Promise<void> {
  const started = await node([...nodeFlags, 'dist/main'], folder);
  expect(JSON.parse(started)).toEqual(ANSWERS);
}

/** Puts in what the CLI generates, as it is, and lets the program add limits to it. */
async function setUp(folder: string, nest: NestVersion): Promise<void> {
  for (const part of ['src', 'test/app.e2e-spec.ts', 'test/limits.e2e-spec.ts']) {
    await rm(join(folder, part), { recursive: true, force: true });
  }
  writeFiles(folder, generatedSources(nest));
  const said = await node(['node_modules/nestjs-sluice/dist/cli/main.js', 'init'], folder);
  expect(said).toContain('src/app.module.ts: RateLimitModule');
  expect(said).toContain('src/app.controller.ts: a limit of its own for getHello()');
  expect(said).toContain('test/app.e2e-spec.ts: RateLimitTesting');
}

/** What an app that listens answers to six calls. */
async function statusesOf(folder: string): Promise<number[]> {
  const port = await freePort();
  const { REDIS_URL: _, ...own } = ownEnvironment();
  const env = { ...own, NODE_OPTIONS: '', PORT: String(port) };
  const app = spawn(process.execPath, ['dist/main'], { cwd: folder, env, stdio: 'ignore' });
  try {
    const statuses: number[] = [];
    while (statuses.length < 6 && app.exitCode === null) {
      // Nobody is there before it listens.
      const response = await fetch(`http://127.0.0.1:${port}/`).catch(() => sleep(50));
      if (response !== undefined) statuses.push(response.status);
    }
    return statuses;
  } finally {
    app.kill();
  }
}

async function expectOneNest(folder: string): Promise<void> {
  const installed = await installedPackages(folder);
  const copiesOf = (wanted: string) => installed.filter((path) => path.endsWith(`node_modules/${wanted}`));
  expect(copiesOf('@nestjs/common')).toEqual(['node_modules/@nestjs/common']);
  expect(copiesOf('@nestjs/core')).toEqual(['node_modules/@nestjs/core']);
  expect(copiesOf('nestjs-sluice')).toEqual(['node_modules/nestjs-sluice']);
  expect(copiesOf('ioredis')).toEqual([]);
}

/** Runs Node without our own options, and resolves with what was written to stdout. */
function node(args: readonly string[], cwd: string): Promise<string> {
  const options = { cwd, env: { ...ownEnvironment(), NODE_OPTIONS: '' }, timeout: RUN_TIMEOUT_MS };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, options, (error, stdout, stderr) => {
      if (error) reject(new Error(`node ${args.join(' ')} failed: ${error.message}\n${stdout}\n${stderr}`));
      else resolve(stdout);
    });
  });
}

/** The folders of all packages, nested ones too, with `/` as the separator. */
async function installedPackages(folder: string): Promise<string[]> {
  const files = await readdir(folder, { recursive: true });
  const manifest = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\/package\.json$/;
  return files.flatMap((file) => manifest.exec(file.split(sep).join('/'))?.[1] ?? []);
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(PACKAGE_FOLDER, folder, 'package.json'), 'utf8')) as Manifest;
}
