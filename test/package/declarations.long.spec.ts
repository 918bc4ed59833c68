import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ensureBuilt } from '../support/processes/built.js';
import { LIMIT_MISTAKES, MOST_LINES } from '../support/limits/limit-mistakes.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

const CONSUMER = `
import { Module } from '@nestjs/common';
import { type CheckResult, LimiterService, MemoryStore, RateLimit, RateLimitModule, RedisStore } from 'nestjs-sluice';
import { RateLimitConsoleModule } from 'nestjs-sluice/console';
import { createTestingStore, RateLimitTesting, TestClock } from 'nestjs-sluice/testing';

class Reports {
  constructor(readonly limiters: LimiterService) {}
  @RateLimit({ algo: 'gcra', rate: 1, interval: '1s' })
  list(result: CheckResult): boolean {
    return result.allowed;
  }
}

@Module({ imports: [RateLimitModule.forRoot({ limits: [{ algo: 'gcra', rate: 1, interval: '1s' }] })] })
export class AppModule {}

export const stores: MemoryStore[] = [new MemoryStore({ maxKeys: 10 }), createTestingStore({ clock: new TestClock() })];
export const console = RateLimitConsoleModule.forRoot({ guards: 'none', actor: (context) => context.getClass().name });
export { RateLimitTesting, RedisStore, Reports };
`;

const WRONG_LIMITS = ["import { RateLimit } from 'nestjs-sluice';", ...Object.values(LIMIT_MISTAKES)].join('\n');

/** What holds only where ioredis is installed: without it these types are `any`. */
const WRONG_REDIS = `
import { RateLimitModule } from 'nestjs-sluice';
export const wrong = RateLimitModule.forRoot({ redis: { hots: 'localhost' } });
`;

const OPTIONS = {
  target: 'ES2023',
  strict: true,
  noEmit: true,
  skipLibCheck: false,
  types: ['node'],
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
};

/** Several checkers would each work out most of the types anew. TypeScript 6 has one. */
const FLAGS = { tsc: ['--checkers', '1'], tsc6: [] };
type Compiler = keyof typeof FLAGS;

interface Manifest {
  dependencies: Record<string, string>;
  peerDependencies: Record<string, string>;
  peerDependenciesMeta: Record<string, { optional?: boolean }>;
}

describe('the declarations', () => {
  let folder: string;

  beforeAll(async () => {
    await ensureBuilt();
    folder = await mkdtemp(join(tmpdir(), 'sluice-types-'));
    const json = await readFile(join(PACKAGE_FOLDER, 'package.json'), 'utf8');
    const { dependencies, peerDependencies, peerDependenciesMeta } = JSON.parse(json) as Manifest;
    const peers = Object.keys(peerDependencies);
    const required = peers.filter((name) => peerDependenciesMeta[name]?.optional !== true);
    const dependenciesOf = { bare: required, full: peers };
    await Promise.all(
      Object.entries(dependenciesOf).map(async ([name, wanted]) => {
        const modules = join(folder, name, 'node_modules');
        const installed = join(modules, 'nestjs-sluice');
        await mkdir(installed, { recursive: true });
        await cp(join(PACKAGE_FOLDER, 'dist'), join(installed, 'dist'), { recursive: true, filter: isReadByCompiler });
        await writeFile(join(installed, 'package.json'), json);
        for (const dependency of [...Object.keys(dependencies), ...wanted, '@types/node']) {
          await link(dependency, modules);
        }
      }),
    );
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  it.each([
    ['bare', []],
    ['full', [expect.stringMatching(/^wrong\.mts\(3,57\): error .*'hots'/)]],
  ])(
    'compile with skipLibCheck: false, in ES modules and CommonJS, and know the options of an ioredis that is installed (%s)',
    async (name, told) => {
      const consumer = { 'esm.mts': CONSUMER, 'commonjs.cts': CONSUMER, 'wrong.mts': WRONG_REDIS };
      expect(await compile(join(folder, name), consumer, { module: 'nodenext' })).toEqual(told);
    },
  );

  it.each([
    ['bundler', { module: 'esnext', moduleResolution: 'bundler' }],
    ['node16', { module: 'node16' }],
  ])('compile with skipLibCheck: false under %s', async (_name, options) => {
    expect(await compile(join(folder, 'bare'), { 'esm.mts': CONSUMER }, options)).toEqual([]);
  });

  it('have the compiler say in a few lines what is wrong with a limit', async () => {
    const lines = await compile(join(folder, 'bare'), { 'wrong.mts': WRONG_LIMITS }, { module: 'nodenext' });
    const starts = lines.flatMap((line, i) => (line.startsWith('wrong.mts(') ? [i] : []));
    expect(starts).toHaveLength(Object.keys(LIMIT_MISTAKES).length);
    const lengths = starts.map((start, i) => (starts[i + 1] ?? lines.length) - start);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(MOST_LINES);
  });

  it('compile with the resolution that knows no exports', async () => {
    // Only TypeScript before 7 has it. Nest 12 itself needs exports to be known, and its declarations are not checked.
    const options = { module: 'commonjs', moduleResolution: 'node10', ignoreDeprecations: '6.0', skipLibCheck: true };
    expect(await compile(join(folder, 'bare'), { 'node10.ts': CONSUMER }, options, 'tsc6')).toEqual([]);
  });
});

/** Folders, manifests and declarations: a compiler looks at no others of an installed package that has declarations. */
function isReadByCompiler(path: string): boolean {
  return !/\.map$|\.js$/.test(path);
}

async function link(name: string, modules: string): Promise<void> {
  const path = join(modules, name);
  await mkdir(dirname(path), { recursive: true });
  await symlink(await realpath(join(PACKAGE_FOLDER, 'node_modules', name)), path);
}

/** The errors of a consumer, one a line. */
async function compile(
  folder: string,
  sources: Record<string, string>,
  options: object,
  compiler: Compiler = 'tsc',
): Promise<string[]> {
  const own = await mkdtemp(join(folder, 'consumer-'));
  const project = { compilerOptions: { ...OPTIONS, ...options }, files: Object.keys(sources) };
  await writeFile(join(own, 'tsconfig.json'), JSON.stringify(project));
  for (const [name, source] of Object.entries(sources)) await writeFile(join(own, name), source);
  const bin = join(PACKAGE_FOLDER, 'node_modules/.bin', compiler);
  const args = ['-p', '.', '--pretty', 'false', ...FLAGS[compiler]];
  return new Promise((resolve, reject) => {
    execFile(bin, args, { cwd: own, timeout: 500_000 }, (error, stdout) => {
      if (error && stdout === '') reject(error);
      else resolve(stdout.split('\n').filter((line) => line !== ''));
    });
  });
}
