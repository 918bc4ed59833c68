import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ensureBuilt } from '../support/processes/built.js';
import { generatedSources, writeFiles } from '../support/processes/generated-project.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';
import { type ProgramRun, runProgram } from './run-program.js';

/** What `nest new` writes, as far as it matters. */
const FILES: Readonly<Record<string, string>> = {
  'package.json': JSON.stringify({ dependencies: { '@nestjs/core': '^12.0.0' } }),
  'nest-cli.json': JSON.stringify({ sourceRoot: 'src' }),
  ...generatedSources(12),
};
const APP_MODULE = FILES['src/app.module.ts']!;

let folder = '';
beforeAll(() => ensureBuilt(), 120_000);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-init-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (files: Readonly<Record<string, string>>) => writeFiles(folder, files);

/** Lets the project find the packages that are installed here. */
function link(...names: readonly string[]): void {
  for (const name of names) {
    const own = name === 'nestjs-sluice' ? PACKAGE_FOLDER : join(PACKAGE_FOLDER, 'node_modules', name);
    mkdirSync(join(folder, 'node_modules'), { recursive: true });
    symlinkSync(own, join(folder, 'node_modules', name));
  }
}

const read = (path: string) => readFileSync(join(folder, path), 'utf8');
const init = (...args: string[]): Promise<ProgramRun> => runProgram(['init', ...args], { cwd: folder });

/** A package manager that leaves its arguments in a file. */
function standIn(name: string, exitCode = 0): void {
  write({ [`bin/${name}`]: `#!/bin/sh\necho "$@" > installed\nexit ${exitCode}\n` });
  spawnSync('chmod', ['+x', join(folder, 'bin', name)]);
}

async function withPath<T>(run: () => Promise<T>): Promise<T> {
  const before = process.env['PATH'];
  process.env['PATH'] = `${join(folder, 'bin')}:${before}`;
  return run().finally(() => (process.env['PATH'] = before));
}

describe('init', () => {
  it('adds the module, an example and the test helper, once', async () => {
    write(FILES);
    link('typescript', 'nestjs-sluice');
    const run = await init();
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).toContain('Changed:\n  src/app.module.ts: RateLimitModule, with a limit for every route\n');
    expect(run.stdout).toContain('  src/app.controller.ts: a limit of its own for getHello()\n');
    expect(run.stdout).toContain('\nNext:\n  npm run start\n  for i in 1 2 3 4 5 6; do curl ');
    expect(read('src/app.module.ts')).toBe(
      APP_MODULE.replace(
        "app.service.js';\n",
        "app.service.js';\nimport { RateLimitModule } from 'nestjs-sluice';\n",
      ).replace(
        'imports: [],',
        `imports: [
    RateLimitModule.forRoot({
      // Counts on this Redis, together with all instances; in process if there is none.
      redis: process.env.REDIS_URL,
      // For every route and client.
      limits: [
        { name: 'burst', algo: 'gcra', rate: 20, interval: '1s', burst: 40 },
      ],
    }),
  ],`,
      ),
    );
    expect(read('src/app.controller.ts')).toContain(
      "  @Get()\n  @RateLimit({ algo: 'token-bucket', rate: 5, interval: '10s' })\n  getHello(): string {",
    );
    expect(read('test/app.e2e-spec.ts')).toContain(
      `await RateLimitTesting.disable(
      Test.createTestingModule({
        imports: [AppModule],
      }),
    ).compile();`,
    );
    const texts = Object.keys(FILES).map(read);
    const again = await init();
    expect(again.stdout).toMatch(/^The project has limits already: nothing is changed\.\n/);
    expect(again.stdout).not.toContain('curl');
    expect(Object.keys(FILES).map(read)).toEqual(texts);
  });

  it('leaves a formatted project formatted', async () => {
    write({ ...FILES, '.oxfmtrc.json': JSON.stringify({ singleQuote: true, trailingComma: 'all', printWidth: 80 }) });
    link('typescript', 'nestjs-sluice');
    // Oxfmt formats as Prettier does, with its width of 80.
    const oxfmt = (...args: string[]) =>
      spawnSync(join(PACKAGE_FOLDER, 'node_modules/.bin/oxfmt'), [...args, 'src', 'test'], {
        cwd: folder,
        encoding: 'utf8',
      });
    expect(oxfmt('--write')).toMatchObject({ status: 0 });
    await init();
    expect(oxfmt('--list-different')).toMatchObject({ status: 0, stdout: '' });
  });

  it('shows what it would do', async () => {
    write(FILES);
    link('typescript');
    const { code, stdout } = await init('--dry-run');
    expect(code).toBe(0);
    expect(stdout).toContain('+++ b/src/app.module.ts\n');
    expect(stdout).toContain("\n+import { RateLimitModule } from 'nestjs-sluice';\n");
    expect(stdout).toContain('\nWould change:\n');
    expect(stdout).toContain('\n  npm install nestjs-sluice\n');
    expect(Object.fromEntries(Object.keys(FILES).map((path) => [path, read(path)]))).toEqual(FILES);
  });

  it.each([
    ['no imports', '@Module({\n  controllers: [],\n})', '@Module({\n  imports: [\n    RateLimitModule.forRoot({'],
    ['nothing', '@Module({})', '@Module({\n  imports: [\n    RateLimitModule.forRoot({'],
    [
      'imports on a line',
      '@Module({\n  imports: [A, B],\n})',
      '  imports: [\n    A,\n    B,\n    RateLimitModule.forRoot({',
    ],
    [
      'imports on lines',
      '@Module({\n  imports: [\n    A,\n    B.forRoot({ c: 1 }),\n  ],\n})',
      '    B.forRoot({ c: 1 }),\n    RateLimitModule.forRoot({\n      // Counts',
    ],
    [
      'imports on lines without a comma behind them',
      '@Module({\n  imports: [\n    A,\n    B\n  ],\n})',
      '    B,\n    RateLimitModule.forRoot({\n      // Counts',
    ],
  ])('adds to a module with %s', async (_, decorator, expected) => {
    write({
      ...FILES,
      'src/app.module.ts': `import { Module } from "@nestjs/common";\n\n${decorator}\nexport class AppModule {}\n`,
    });
    link('typescript', 'nestjs-sluice');
    expect(await init()).toMatchObject({ code: 0, stderr: '' });
    const text = read('src/app.module.ts');
    expect(text).toContain(expected);
    expect(text).toContain('import { RateLimitModule } from "nestjs-sluice";\n');
    expect(text).toContain('{ name: "burst",');
    const { default: ts } = await import('typescript');
    expect(ts.transpileModule(text, { reportDiagnostics: true }).diagnostics).toEqual([]);
  });

  it('keeps the line ends of a file', async () => {
    write({ ...FILES, 'src/app.module.ts': APP_MODULE.replaceAll('\n', '\r\n') });
    link('typescript', 'nestjs-sluice');
    await init();
    expect(read('src/app.module.ts').replaceAll('\r\n', '')).not.toContain('\n');
  });

  it.each([
    ['npm', 'package-lock.json', 'install nestjs-sluice'],
    ['pnpm', 'pnpm-lock.yaml', 'add nestjs-sluice'],
    ['yarn', 'yarn.lock', 'add nestjs-sluice'],
  ])('installs by %s', async (name, lock, args) => {
    write({ ...FILES, [lock]: '' });
    link('typescript');
    standIn(name);
    const { code, stdout } = await withPath(() => init());
    expect(code).toBe(0);
    expect(read('installed')).toBe(`${args}\n`);
    expect(stdout).not.toContain(`${name} ${args}\n`);
    rmSync(join(folder, 'installed'));
    expect((await withPath(() => init('--skip-install'))).stdout).toContain(`\n  ${name} ${args}\n`);
    expect(existsSync(join(folder, 'installed'))).toBe(false);
  });

  it('says if that failed', async () => {
    write(FILES);
    link('typescript');
    standIn('npm', 7);
    expect(await withPath(() => init())).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        "'npm install nestjs-sluice' failed, so nestjs-sluice is not installed. Run the command yourself",
      ),
    });
  });

  it.each<[string, Record<string, string>, string[], number, string]>([
    [
      'a folder without a project',
      {},
      [],
      1,
      "isn't a Nest project: its package.json is missing or lacks '@nestjs/core'.",
    ],
    ['another project', { 'package.json': '{}' }, [], 1, "isn't a Nest project"],
    [
      'a project without a root module',
      { 'package.json': FILES['package.json']! },
      [],
      1,
      "the file 'src/app.module.ts' does not exist. Pass the file of the root module",
    ],
    ['a file without a module', FILES, ['--module', 'src/app.controller.ts'], 1, 'has no class with @Module({ ... })'],
    [
      'imports that are not a list',
      { ...FILES, 'src/app.module.ts': APP_MODULE.replace('[]', 'all()') },
      [],
      1,
      "the 'imports' of the module in 'src/app.module.ts' are not a list",
    ],
    ['an argument', FILES, ['src'], 2, "unexpected argument 'src': expected only options"],
    ['a misspelt option', FILES, ['--dry-rum'], 2, "unknown option '--dry-rum'. Did you mean '--dry-run'?"],
  ])('refuses %s, and changes nothing', async (_, files, args, code, message) => {
    write(files);
    link('typescript', 'nestjs-sluice');
    expect(await init(...args)).toEqual({ code, stdout: '', stderr: expect.stringContaining(message) });
    for (const [path, text] of Object.entries(files)) expect(read(path)).toBe(text);
  });

  it('tells its options', async () => {
    const { code, stdout } = await init('--help');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: nestjs-sluice init /);
  });
});

/** What Nest's own command does. */
function add(...args: string[]) {
  write(FILES);
  link('typescript', '@nestjs', '@angular-devkit', 'nestjs-sluice');
  const nest = join(PACKAGE_FOLDER, 'node_modules/@nestjs/cli/bin/nest.js');
  const { status, stdout } = spawnSync(process.execPath, [nest, 'add', 'nestjs-sluice', ...args], {
    cwd: folder,
    env: { ...process.env, NODE_OPTIONS: '' },
    encoding: 'utf8',
  });
  return { status, stdout };
}

describe('nest add nestjs-sluice', () => {
  it('does the same', () => {
    expect(add('--skip-install')).toEqual({
      status: 0,
      stdout: expect.stringContaining('src/app.module.ts: RateLimitModule'),
    });
    expect(read('src/app.module.ts')).toContain('RateLimitModule.forRoot({');
    expect(read('src/app.controller.ts')).toContain('@RateLimit(');
  });

  it.each([[['--skip-install', '--dry-run']], [['--dry-run', '--skip-install']]])(
    'shows a diff with %j, and writes nothing',
    (args) => {
      const { status, stdout } = add(...args);
      expect(status).toBe(0);
      expect(stdout).toContain('+++ b/src/app.module.ts');
      expect(stdout).toContain('Would change:');
      for (const [path, text] of Object.entries(FILES)) expect(read(path)).toBe(text);
    },
  );
});
