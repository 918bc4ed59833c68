/**
 * Calls of several processes to an API with a hidden limit, of which another consumer takes a share: how many are refused, and how
 * much of what was possible goes out. `node bench/outbound/main.mjs [--seconds 60] [--processes 8] [--only nestjs-sluice]
 * [--tells all|retry-after|nothing] [--phase 4990]`, after `npm run build` and `npm ci --prefix bench`. The phase is by how many
 * milliseconds the API's windows of 5 s begin after a multiple of 5 s since the epoch; without one they begin with the first call. It
 * also says how many calls were decided without Redis, and the share of the processors that the host gave to others meanwhile.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { besideHost } from '../host.mjs';
import { startRedisProcess } from '../../test/support/redis/redis-process.mjs';
import { contenders } from './contenders.mjs';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    processes: { type: 'string', default: '8' },
    only: { type: 'string' },
    tells: { type: 'string', default: 'all' },
    phase: { type: 'string' },
  },
});
const processes = Number(values.processes);
const here = (file) => fileURLToPath(new URL(file, import.meta.url));
const packagePath = pathToFileURL(here('../../dist/index.js')).href;

/** 100 calls a second, of which the other consumer takes a fifth. Each process has more calls than it may make. */
const UPSTREAM = {
  quota: 500,
  windowMs: 5000,
  latencyMs: 40,
  otherShare: 0.2,
  tells: values.tells,
  ...(values.phase !== undefined && { phaseMs: Number(values.phase) }),
};
const WAITING = 20;

async function answerOf(child, message) {
  const answer = once(child, 'message');
  child.send(message);
  return (await answer)[0];
}

async function measure(contender, redisUrl) {
  const upstream = fork(here('upstream.mjs'), [JSON.stringify({ ...UPSTREAM, atOnce: WAITING })]);
  const [{ port }] = await once(upstream, 'message');
  const prefix = `bench-${process.pid}-${Date.now()}`;
  const terms = { ...UPSTREAM, contender, redisUrl, prefix, processes, packagePath, waiting: WAITING };
  const workers = Array.from({ length: processes }, (_, index) =>
    fork(here('worker.mjs'), [JSON.stringify({ ...terms, index, url: `http://127.0.0.1:${port}/` })]),
  );
  try {
    await Promise.all(workers.map((worker) => once(worker, 'message')));
    // From the beginning of a window to the end of one.
    await sleep(UPSTREAM.windowMs);
    const { windowEnd } = await answerOf(upstream, 'begin');
    await sleep(windowEnd - Date.now() + 1);
    await answerOf(upstream, 'begin');
    await sleep(Math.round((Number(values.seconds) * 1000) / UPSTREAM.windowMs) * UPSTREAM.windowMs);
    const { total } = await answerOf(upstream, 'end');
    const ended = await Promise.all(workers.map((worker) => answerOf(worker, 'end')));
    const sumOf = (name) => ended.reduce((sum, each) => sum + (each[name] ?? 0), 0);
    return { ...total, failed: sumOf('failed'), fallback: sumOf('fallback') };
  } finally {
    for (const child of [...workers, upstream]) child.kill('SIGKILL');
  }
}

const percent = (part, whole) => `${((100 * part) / whole).toFixed(2)} %`;

const redis = await startRedisProcess();
try {
  console.log(`${processes} processes, ${values.seconds} s, ${JSON.stringify(UPSTREAM)}`);
  for (const contender of Object.keys(contenders)) {
    if (values.only !== undefined && values.only !== contender) continue;
    const { found, stolen } = await besideHost(() => measure(contender, redis.url));
    const { allowed, refused, possible, order, failed, fallback } = found;
    const shares = `${percent(refused, allowed + refused)} refused, ${percent(allowed, possible)} of what was possible`;
    const overtaken = `${percent(order, allowed)} overtaken within a process`;
    console.log(`${contender}: ${allowed} allowed, ${refused} refused: ${shares}, ${overtaken}, ${failed} failed`);
    console.log(
      `  ${fallback} decided without Redis, ${stolen === undefined ? 'unknown' : percent(stolen, 1)} stolen by the host`,
    );
  }
} finally {
  await redis.stop();
}
