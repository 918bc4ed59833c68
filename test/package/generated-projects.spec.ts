import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { npm, ownEnvironment, PACKAGE_FOLDER } from '../support/npm.js';
import { PACK_TIMEOUT_MS, type PackedAnew, packAnew } from '../support/packed-anew.js';

const INSTALL_TIMEOUT_MS = 240_000;
const RUN_TIMEOUT_MS = 110_000;

const ANSWERS = [
  { status: 200, remaining: '"hello";r=1;t=3600', retryAfter: null },
  { status: 200, remaining: '"hello";r=0;t=3600', retryAfter: null },
  { status: 429, remaining: expect.stringContaining('"hello";r=0'), retryAfter: expect.stringMatching(/^3\d{3}$/) },
];

type Step = (folder: string) => Promise<void>;

/** The scripts that test a project. What is generated ends a test after 5 s, which a busy machine may take. */
function tests(...timeouts: readonly string[]): Record<string, Step> {
  const flags = timeouts.map((name) => `--${name}=${RUN_TIMEOUT_MS}`);
  const step = (script: string) => async (folder: string) =>
    void (await npm(['run', script, '--', ...flags], folder, RUN_TIMEOUT_MS));
  return { 'passes npm run test': step('test'), 'passes npm run test:e2e': step('test:e2e') };
}

/** The steps of each project, in the order in which they are taken: some need the build of one before. */
const PROJECTS: Record<string, Record<string, Step>> = {
  'nest-11': {
    ...tests('testTimeout'),
    'is built and started': async (folder) => {
      await npm(['run', 'build'], folder, RUN_TIMEOUT_MS);
      await expectStart(folder);
    },
    'has one copy of Nest, and no ioredis': expectOneNest,
    'starts where require takes no ES modules': async (folder) => {
      const started = await node(['--no-experimental-require-module', 'dist/main.js'], folder);
      expect(JSON.parse(started)).toEqual(ANSWERS);
    },
    'passes Jest that knows ES modules': async (folder) => {
      const jest = [
        'node_modules/jest/bin/jest.js',
        '--config',
        'test/jest-e2e.json',
        `--testTimeout=${RUN_TIMEOUT_MS}`,
      ];
      await node(['--experimental-vm-modules', ...jest], folder);
    },
    'compiles with the resolution that knows no exports, its declarations checked': async (folder) => {
      const manifest = await readFile(join(folder, 'node_modules/typescript/package.json'), 'utf8');
      expect((JSON.parse(manifest) as { version: string }).version).toMatch(/^5\.7\./);
      const resolution = { module: 'commonjs', moduleResolution: 'node10', resolvePackageJsonExports: false };
      const checks = { skipLibCheck: false, lib: ['ES2023'], types: ['node'], incremental: false };
      const project = { extends: './tsconfig.build.json', compilerOptions: { ...resolution, ...checks } };
      await writeFile(join(folder, 'tsconfig.node10.json'), JSON.stringify(project));
      await node(['node_modules/typescript/bin/tsc', '--noEmit', '-p', 'tsconfig.node10.json'], folder);
    },
  },
  'nest-12': {
    ...tests('testTimeout', 'hookTimeout'),
    'is built and started': async (folder) => {
      await node([join(PACKAGE_FOLDER, 'node_modules/.bin/tsc6'), '-p', 'tsconfig.build.json'], folder);
      await expectStart(folder);
    },
    'has one copy of Nest, and no ioredis': expectOneNest,
  },
};

/** Longer than all steps of a project together: each has a limit of its own. */
const ALL_TIMEOUT_MS = 2 * PACK_TIMEOUT_MS + INSTALL_TIMEOUT_MS + 10 * RUN_TIMEOUT_MS;

let packed: PackedAnew | undefined;
const folders: string[] = [];
const outcomes = new Map<string, Map<string, PromiseSettledResult<void>>>();

beforeAll(async () => {
  packed = await packAnew();
  const { tarball } = packed;
  await Promise.all(
    Object.entries(PROJECTS).map(async ([name, steps]) => {
      outcomes.set(name, await takeSteps(await install(name, tarball), steps));
    }),
  );
}, ALL_TIMEOUT_MS);

afterAll(async () => {
  await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })));
  await packed?.remove();
});

/**
 * What the Nest CLI generates lies in `projects`, with limits on it and without the packages that neither build nor test need:
 * CommonJS, ts-jest and TypeScript 5.7 for Nest 11, ES modules and vitest for Nest 12. The two projects run side by side.
 */
describe.each(Object.keys(PROJECTS))('a generated project of %s', (name) => {
  it.each(Object.keys(PROJECTS[name]!))('%s', (step) => {
    const outcome = outcomes.get(name)!.get(step)!;
    if (outcome.status === 'rejected') throw outcome.reason;
  });
});

/** The folder of a copy of a project, with its packages and the tarball installed. */
async function install(name: string, tarball: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `sluice-${name}-`));
  folders.push(folder);
  await cp(join(PACKAGE_FOLDER, 'test/package/projects', name), folder, { recursive: true });
  const flags = ['--no-audit', '--no-fund', '--prefer-offline', '--no-package-lock', '--ignore-scripts'];
  await npm(['install', ...flags, tarball], folder, INSTALL_TIMEOUT_MS);
  return folder;
}

/** One after the other, so that no step waits for the processor with more than those of the other project. */
async function takeSteps(folder: string, steps: Record<string, Step>) {
  const ends = new Map<string, PromiseSettledResult<void>>();
  for (const [step, take] of Object.entries(steps)) {
    const [end] = await Promise.allSettled([take(folder)]);
    ends.set(step, end);
  }
  return ends;
}

async function expectStart(folder: string): Promise<void> {
  const started = await npm(['run', 'start:prod', '--silent'], folder, RUN_TIMEOUT_MS);
  expect(JSON.parse(started)).toEqual(ANSWERS);
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
