/**
 * Requests a second of a Nest app on Express, the processor time that the app and Redis take for each, and how long the app takes
 * to start. Client, app and Redis share the processors, so the processor time tells more than the requests a second.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { Redis } from 'ioredis';
import { median, serverMicros } from '../measure.mjs';

const SERVER = fileURLToPath(new URL('http-server.mjs', import.meta.url));

const VARIANTS = {
  unguarded: 'without a guard',
  'memory-1': 'nestjs-sluice, 1 limit, in process',
  'memory-3': 'nestjs-sluice, 3 limits, in process',
  'redis-1': 'nestjs-sluice, 1 limit, Redis',
  'redis-3': 'nestjs-sluice, 3 limits, Redis',
  'throttler-1': '@nestjs/throttler, 1 limit, Redis',
  'throttler-3': '@nestjs/throttler, 3 limits, Redis',
};

async function start(variant, url) {
  const child = fork(SERVER, [variant, url], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const [{ url: at, startMs }] = await once(child, 'message');
  const stop = async () => {
    child.kill();
    await once(child, 'exit');
  };
  const cpuMicros = async () => {
    child.send('cpu');
    const [told] = await once(child, 'message');
    return told.cpuMicros;
  };
  return { at, startMs, stop, cpuMicros };
}

async function round(app, redis, seconds) {
  const [appBefore, redisBefore] = [await app.cpuMicros(), await serverMicros(redis)];
  const { requests, latency, non2xx } = await autocannon({ url: app.at, connections: 64, duration: seconds });
  if (non2xx > 0) throw new Error(`${app.name} refused ${non2xx} requests`);
  return {
    perSecond: requests.average,
    p99Ms: latency.p99,
    cpuMicros: ((await app.cpuMicros()) - appBefore) / requests.total,
    serverCpuMicros: ((await serverMicros(redis)) - redisBefore) / requests.total,
  };
}

export async function http({ url, rounds, seconds }) {
  const redis = new Redis(url);
  const apps = [];
  for (const [variant, name] of Object.entries(VARIANTS)) {
    apps.push({ name, results: [], ...(await start(variant, url)) });
  }
  try {
    for (const app of apps) await autocannon({ url: app.at, connections: 64, duration: 3 });
    for (let i = 0; i < rounds; i++) {
      for (const app of i % 2 === 0 ? apps : apps.toReversed()) app.results.push(await round(app, redis, seconds));
    }
  } finally {
    await redis.quit();
    for (const app of apps) await app.stop();
  }
  return apps.map(({ name, results, startMs }) => {
    const of = (field) => median(results.map((result) => result[field]));
    return {
      name,
      startMs,
      perSecond: of('perSecond'),
      p99Ms: of('p99Ms'),
      cpuMicros: of('cpuMicros'),
      serverCpuMicros: of('serverCpuMicros'),
    };
  });
}
