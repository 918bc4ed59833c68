/** `npm run bench [-- --quick]`: times nestjs-sluice beside its peers and writes docs/benchmarks.md. */
import { readFile } from 'node:fs/promises';
import { Redis } from 'ioredis';
import { ensureRedisServer } from '../test/support/redis-binary.mjs';
import { startRedisProcess } from '../test/support/redis-process.mjs';
import { installPackage } from './install-package.mjs';

const quick = process.argv.includes('--quick');
const settings = quick
  ? { rounds: 1, ms: 400, seconds: 1, httpRounds: 1 }
  : { rounds: 3, ms: 1000, seconds: 3, httpRounds: 3 };

async function versionOf(name) {
  for (const folder of ['node_modules/', '../node_modules/']) {
    try {
      return JSON.parse(await readFile(new URL(`${folder}${name}/package.json`, import.meta.url), 'utf8')).version;
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
const { decisions } = await import('./cases/decisions.mjs');
const { growth } = await import('./cases/growth.mjs');
const { http } = await import('./cases/http.mjs');
const { memory } = await import('./cases/memory.mjs');
const { write } = await import('./report/page.mjs');

let server;
let url = process.env.REDIS_URL;
if (!url) {
  ensureRedisServer();
  server = await startRedisProcess();
  url = `redis://${server.host}:${server.port}`;
}
try {
  const found = await versions(url);
  console.log('Decisions …');
  const cases = await decisions({ url, ...settings });
  console.log('Memory …');
  const bytes = await memory({ url });
  console.log('Growth …');
  const grown = await growth({ url, quick, ms: settings.ms });
  console.log('Requests …');
  const requests = await http({ url, rounds: settings.httpRounds, seconds: settings.seconds });
  const reached = await write({ cases, http: requests, memory: bytes, growth: grown, versions: found, quick });
  for (const { what, target, value, reached: yes } of reached) {
    console.log(`${yes ? 'reached    ' : 'not reached'} ${what}: ${value.toFixed(2)} (${target})`);
  }
  console.log('Written to docs/benchmarks.md');
} finally {
  await server?.stop();
}
