/**
 * `npm run bench [-- --quick] [--only <case>[=<part of a title>],...] [--profile] [--resume] [--out <folder>]`: times
 * nestjs-sluice beside its peers and writes bench/NOTES.md; what is not the whole of it, into a folder of its own. What each
 * case found is kept, so that `--resume` goes on where a run was interrupted.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { ensureRedisServer } from '../test/support/redis/redis-binary.mjs';
import { startRedisProcess } from '../test/support/redis/redis-process.mjs';
import { besideHost } from './host.mjs';
import { installPackage } from './install-package.mjs';

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    profile: { type: 'boolean' },
    resume: { type: 'boolean', default: false },
    out: { type: 'string' },
  },
});
const { quick } = options;
const isWhole = !quick && options.only === undefined;
const temporary = join(tmpdir(), 'sluice-bench');
const folder = options.out ?? (isWhole ? fileURLToPath(new URL('.', import.meta.url)) : temporary);
const settings = {
  ...(quick
    ? { rounds: 1, ms: 400, seconds: 1, appRounds: 1, httpRounds: 1, processes: 1 }
    : { rounds: 3, ms: 600, seconds: 1, appRounds: 3, httpRounds: 1, processes: 3 }),
  quick,
  profile: options.profile ?? !quick,
};
/** Titles have commas, too, before figures and spaces. */
const only = (options.only ?? '').split(/,(?=[a-z])/).map((each) => each.split('='));
/** What the cases of this run have found, for a run that goes on with it. */
const kept = join(
  temporary,
  `results-${quick ? 'quick' : 'full'}-${(options.only ?? 'all').replaceAll(/[^\w,-]/g, '_')}.json`,
);

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
    '@nestjs-redis/throttler-storage',
    'rate-limiter-flexible',
    'rate-limit-redis',
  ];
  const found = await Promise.all(names.map(async (name) => [name, await versionOf(name)]));
  return { Node: process.version, Redis: server, ...Object.fromEntries(found) };
}

/** The cases that are called so, or whose name has that in it; each with the part of a title that is wanted. */
function chosenFrom(cases) {
  const chosen = new Map();
  for (const [name, title = ''] of only) {
    const exact = cases.filter((each) => each.name === name);
    const found = exact.length > 0 ? exact : cases.filter((each) => each.name.includes(name));
    if (found.length === 0)
      throw new Error(`no case is called ${name}; there are ${cases.map((each) => each.name).join(', ')}`);
    for (const each of found) chosen.set(each, title);
  }
  return cases.filter((each) => chosen.has(each)).map((each) => ({ ...each, title: chosen.get(each) }));
}

async function keptResults() {
  return options.resume ? JSON.parse(await readFile(kept, 'utf8')) : { results: {}, disturbed: {} };
}

settings.tarballBytes = await installPackage();
// They import the package that has just been installed.
const { CASES } = await import('./cases/index.mjs');
const { percent } = await import('./report/format.mjs');
const { write } = await import('./report/page.mjs');
const { hasReason } = await import('./report/reasons.mjs');

const chosen = chosenFrom(CASES);

let server;
let url = process.env.REDIS_URL;
if (!url) {
  ensureRedisServer();
  server = await startRedisProcess();
  url = `redis://${server.host}:${server.port}`;
}
try {
  const found = await versions(url);
  const { results, disturbed } = await keptResults();
  await mkdir(temporary, { recursive: true });
  for (const { name, title, measure } of chosen) {
    if (results[name] !== undefined) continue;
    const start = performance.now();
    const { found: result, stolen } = await besideHost(() => measure({ url, ...settings, only: title }));
    results[name] = result;
    if (stolen !== undefined) disturbed[name] = stolen;
    await writeFile(kept, JSON.stringify({ results, disturbed }));
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
    const lacking = yes || hasReason(what) ? '' : '; report/reasons.mjs has no reason';
    console.log(`${yes ? 'reached    ' : 'not reached'} ${what}: ${value.toFixed(2)} (${target})${lacking}`);
  }
  console.log(`Written to ${join(folder, 'NOTES.md')}`);
} finally {
  await server?.stop();
}
