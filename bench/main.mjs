/**
 * `npm run bench [-- --quick] [--only <case>[=<part of a title>]] [--profile] [--out <folder>]`: times nestjs-sluice beside its
 * peers and writes docs/benchmarks.md; what is not the whole of it, into a folder of its own.
 */
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { ensureRedisServer } from '../test/support/redis-binary.mjs';
import { startRedisProcess } from '../test/support/redis-process.mjs';
import { besideHost } from './host.mjs';
import { installPackage } from './install-package.mjs';

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    profile: { type: 'boolean' },
    out: { type: 'string' },
  },
});
const { quick } = options;
const isWhole = !quick && options.only === undefined;
const folder =
  options.out ?? (isWhole ? fileURLToPath(new URL('../docs', import.meta.url)) : join(tmpdir(), 'sluice-bench'));
const settings = {
  ...(quick
    ? { rounds: 1, ms: 400, seconds: 1, httpRounds: 1, processes: 1 }
    : { rounds: 3, ms: 1000, seconds: 1, httpRounds: 3, processes: 3 }),
  quick,
  profile: options.profile ?? !quick,
};
const [onlyCase = '', onlyTitle = ''] = options.only?.split('=') ?? [];

async function versionOf(name) {
  for (const modules of ['node_modules/', '../node_modules/']) {
    try {
      return JSON.parse(await readFile(new URL(`${modules}${name}/package.json`, import.meta.url), 'utf8')).version;
    } catch {
      // The other folder has it.
    }
  }
  return 'unknown';
}

async function versions(url) {
  const redis = new Redis(url);
  const server = /redis_version:(\S+)/.exec(await redis.info('server'))[1];
  await redis.quit();
  const names = [
    'ioredis',
    '@nestjs/core',
    '@nestjs/throttler',
    '@nest-lab/throttler-storage-redis',
    'rate-limiter-flexible',
    'rate-limit-redis',
  ];
  const found = await Promise.all(names.map(async (name) => [name, await versionOf(name)]));
  return { Node: process.version, Redis: server, ...Object.fromEntries(found) };
}

await installPackage();
// They import the package that has just been installed.
const { CASES } = await import('./cases/index.mjs');
const { percent } = await import('./report/format.mjs');
const { write } = await import('./report/page.mjs');

const exact = CASES.filter(({ name }) => name === onlyCase);
const chosen = exact.length > 0 ? exact : CASES.filter(({ name }) => name.includes(onlyCase));
if (chosen.length === 0)
  throw new Error(`no case is called ${onlyCase}; there are ${CASES.map(({ name }) => name).join(', ')}`);

let server;
let url = process.env.REDIS_URL;
if (!url) {
  ensureRedisServer();
  server = await startRedisProcess();
  url = `redis://${server.host}:${server.port}`;
}
try {
  const found = await versions(url);
  const results = {};
  const disturbed = {};
  for (const { name, measure } of chosen) {
    const start = performance.now();
    const { found: result, stolen } = await besideHost(() => measure({ url, ...settings, only: onlyTitle }));
    results[name] = result;
    if (stolen !== undefined) disturbed[name] = stolen;
    const seconds = ((performance.now() - start) / 1000).toFixed(0);
    console.log(`${name}: ${seconds} s${stolen > 0.02 ? `; the host gave ${percent(stolen)} to others` : ''}`);
  }
  const to = pathToFileURL(`${resolve(folder)}/`);
  const reached = await write({
    cases: chosen,
    results,
    versions: found,
    disturbed,
    command: process.argv.slice(2),
    to,
  });
  for (const { what, target, value, reached: yes } of reached) {
    console.log(`${yes ? 'reached    ' : 'not reached'} ${what}: ${value.toFixed(2)} (${target})`);
  }
  console.log(`Written to ${join(folder, 'benchmarks.md')}`);
} finally {
  await server?.stop();
}
