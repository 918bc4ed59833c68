import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ensureBuilt } from '../support/built.js';
import { npm, ownEnvironment, pack, PACKAGE_FOLDER } from '../support/npm.js';

const INSTALL_TIMEOUT_MS = 240_000;
const RUN_TIMEOUT_MS = 110_000;

const ANSWERS = [
  { status: 200, remaining: '"hello";r=1;t=3600', retryAfter: null },
  { status: 200, remaining: '"hello";r=0;t=3600', retryAfter: null },
  { status: 429, remaining: expect.stringContaining('"hello";r=0'), retryAfter: expect.stringMatching(/^3\d{3}$/) },
];

let packed: string;
let tarball: string;

beforeAll(async () => {
  await ensureBuilt();
  packed = await mkdtemp(join(tmpdir(), 'sluice-tarball-'));
  const { filename } = await pack('--pack-destination', packed);
  tarball = join(packed, filename);
}, 180_000);

afterAll(() => rm(packed, { recursive: true, force: true }));

/**
 * What the Nest CLI generates lies in `projects`, with limits on it and without the packages that neither build nor test need:
 * CommonJS, ts-jest and TypeScript 5.7 for Nest 11, ES modules and vitest for Nest 12.
 */
describe.each(['nest-11', 'nest-12'])('a generated project of %s', (name) => {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), `sluice-${name}-`));
    await cp(join(PACKAGE_FOLDER, 'test/package/projects', name), folder, { recursive: true });
    const flags = ['--no-audit', '--no-fund', '--prefer-offline', '--no-package-lock', '--ignore-scripts'];
    await npm(['install', ...flags, tarball], folder, INSTALL_TIMEOUT_MS);
  }, INSTALL_TIMEOUT_MS + 90_000);

  afterAll(async () => {
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  it.each(['test', 'test:e2e'])(
    'passes npm run %s',
    async (script) => {
      await npm(['run', script], folder, RUN_TIMEOUT_MS);
    },
    RUN_TIMEOUT_MS,
  );

  it(
    'is built and started',
    async () => {
      if (name === 'nest-11') await npm(['run', 'build'], folder, RUN_TIMEOUT_MS);
      else await node([join(PACKAGE_FOLDER, 'node_modules/.bin/tsc6'), '-p', 'tsconfig.build.json'], folder);
      const started = await npm(['run', 'start:prod', '--silent'], folder, RUN_TIMEOUT_MS);
      expect(JSON.parse(started)).toEqual(ANSWERS);
    },
    RUN_TIMEOUT_MS,
  );

  it('has one copy of Nest, and no ioredis', async () => {
    const installed = await installedPackages(folder);
    const copiesOf = (wanted: string) => installed.filter((path) => path.endsWith(`node_modules/${wanted}`));
    expect(copiesOf('@nestjs/common')).toEqual(['node_modules/@nestjs/common']);
    expect(copiesOf('@nestjs/core')).toEqual(['node_modules/@nestjs/core']);
    expect(copiesOf('nestjs-sluice')).toEqual(['node_modules/nestjs-sluice']);
    expect(copiesOf('ioredis')).toEqual([]);
  });

  if (name === 'nest-11') {
    it(
      'starts where require takes no ES modules',
      async () => {
        const started = await node(['--no-experimental-require-module', 'dist/main.js'], folder);
        expect(JSON.parse(started)).toEqual(ANSWERS);
      },
      RUN_TIMEOUT_MS,
    );

    it(
      'passes Jest that knows ES modules',
      async () => {
        const jest = ['node_modules/jest/bin/jest.js', '--config', 'test/jest-e2e.json'];
        await node(['--experimental-vm-modules', ...jest], folder);
      },
      RUN_TIMEOUT_MS,
    );

    it(
      'compiles with the resolution that knows no exports, its declarations checked',
      async () => {
        const manifest = await readFile(join(folder, 'node_modules/typescript/package.json'), 'utf8');
        expect((JSON.parse(manifest) as { version: string }).version).toMatch(/^5\.7\./);
        const resolution = { module: 'commonjs', moduleResolution: 'node10', resolvePackageJsonExports: false };
        const compilerOptions = {
          ...resolution,
          skipLibCheck: false,
          lib: ['ES2023'],
          types: ['node'],
          incremental: false,
        };
        await writeFile(
          join(folder, 'tsconfig.node10.json'),
          JSON.stringify({ extends: './tsconfig.build.json', compilerOptions }),
        );
        await node(['node_modules/typescript/bin/tsc', '--noEmit', '-p', 'tsconfig.node10.json'], folder);
      },
      RUN_TIMEOUT_MS,
    );
  }
});

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
