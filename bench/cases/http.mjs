/** Requests a second of a Nest app on Express, and how long it takes to start. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { median } from '../measure.mjs';

const SERVER = fileURLToPath(new URL('http-server.mjs', import.meta.url));

const VARIANTS = {
  unguarded: 'without a guard',
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
  return { at, startMs, stop };
}

export async function http({ url, rounds, seconds }) {
  const apps = [];
  for (const [variant, name] of Object.entries(VARIANTS)) {
    apps.push({ name, results: [], ...(await start(variant, url)) });
  }
  try {
    for (const app of apps) await autocannon({ url: app.at, connections: 64, duration: 1 });
    for (let i = 0; i < rounds; i++) {
      for (const app of i % 2 === 0 ? apps : apps.toReversed()) {
        const { requests, latency, non2xx } = await autocannon({ url: app.at, connections: 64, duration: seconds });
        if (non2xx > 0) throw new Error(`${app.name} refused ${non2xx} requests`);
        app.results.push({ perSecond: requests.average, p99Ms: latency.p99 });
      }
    }
  } finally {
    for (const app of apps) await app.stop();
  }
  return apps.map(({ name, results, startMs }) => ({
    name,
    startMs,
    perSecond: median(results.map(({ perSecond }) => perSecond)),
    p99Ms: median(results.map(({ p99Ms }) => p99Ms)),
  }));
}
