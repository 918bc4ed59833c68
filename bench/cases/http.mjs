/**
 * Requests a second of a Nest app on Express or Fastify, the processor time that the app and Redis take for each, and how long the app takes
 * to start. Client, app and Redis share the processors, so the processor time tells more than the requests a second.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { Redis } from 'ioredis';
import { keepApart } from '../cores.mjs';
import { median, serverMicros } from '../measure.mjs';
import { micros, percent, table } from '../report/format.mjs';

const CONNECTIONS = 64;
const OWN_CORE = 'Each app has a processor to itself while it is timed; client and Redis share another.';
const SHARED_CORES =
  'Client, app and Redis share the processors, so the processor time a request tells more than the requests a second.';
/** The first second of an app costs three times as much a request. */
const WARM_UP_SECONDS = 3;

const SERVER = fileURLToPath(new URL('http-server.mjs', import.meta.url));

const VARIANTS = {
  unguarded: 'without a guard',
  headers: 'a guard that only sets two headers',
  'memory-1': 'nestjs-sluice, 1 limit, in process',
  'memory-3': 'nestjs-sluice, 3 limits, in process',
  'redis-1': 'nestjs-sluice, 1 limit, Redis',
  'redis-3': 'nestjs-sluice, 3 limits, Redis',
  'bare-1': 'nestjs-sluice, 1 limit, Redis, everything off',
  'bare-3': 'nestjs-sluice, 3 limits, Redis, everything off',
  'throttler-1': '@nestjs/throttler, 1 limit, Redis',
  'throttler-3': '@nestjs/throttler, 3 limits, Redis',
};

async function start(framework, variant, url) {
  const child = fork(SERVER, [framework, variant, url], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const [{ url: at, startMs }] = await once(child, 'message');
  const stop = async () => {
    child.kill();
    await once(child, 'exit');
  };
  const ask = async (question) => {
    child.send(question);
    const [answer] = await once(child, 'message');
    return answer;
  };
  return { pid: child.pid, at, startMs, stop, ask, cpuMicros: async () => (await ask('cpu')).cpuMicros };
}

async function round(app, redis, seconds) {
  const [appBefore, redisBefore] = [await app.cpuMicros(), await serverMicros(redis)];
  const before = process.cpuUsage();
  const { requests, latency, non2xx } = await autocannon({ url: app.at, connections: CONNECTIONS, duration: seconds });
  if (non2xx > 0) throw new Error(`${app.name} refused ${non2xx} requests`);
  const { user, system } = process.cpuUsage(before);
  return {
    perSecond: requests.average,
    p99Ms: latency.p99,
    cpuMicros: ((await app.cpuMicros()) - appBefore) / requests.total,
    serverCpuMicros: ((await serverMicros(redis)) - redisBefore) / requests.total,
    clientCpuMicros: (user + system) / requests.total,
  };
}

/** Times all apps once, each in a process of its own. */
async function generation(framework, redis, { url, httpRounds: rounds, seconds, profile }) {
  // Or the limits would be used up in the end.
  await redis.flushall();
  const apps = [];
  for (const [variant, name] of Object.entries(VARIANTS)) {
    apps.push({ name, results: [], ...(await start(framework, variant, url)) });
  }
  const cores = await keepApart(
    apps.map(({ pid }) => pid),
    redis,
  );
  try {
    for (const app of apps) await autocannon({ url: app.at, connections: CONNECTIONS, duration: WARM_UP_SECONDS });
    for (let i = 0; i < rounds; i++) {
      for (const app of i % 2 === 0 ? apps : apps.toReversed()) app.results.push(await round(app, redis, seconds));
    }
    for (const app of apps) {
      if (!profile || !app.name.startsWith('nestjs-sluice')) continue;
      await app.ask('profile');
      await autocannon({ url: app.at, connections: CONNECTIONS, duration: seconds });
      ({ profile: app.profile } = await app.ask('profiled'));
    }
  } finally {
    cores.end();
    for (const app of apps) await app.stop();
  }
  return apps.map(({ name, results, startMs, profile: top }) => ({
    name,
    results,
    startMs,
    profile: top,
    hasOwnCore: cores.areApart,
  }));
}

async function measure(framework, settings) {
  const redis = new Redis(settings.url);
  const generations = [];
  try {
    for (let left = settings.processes; left > 0; left--) {
      generations.push(await generation(framework, redis, { ...settings, profile: settings.profile && left === 1 }));
    }
  } finally {
    await redis.quit();
  }
  return Object.values(VARIANTS).map((name, index) => {
    const apps = generations.map((each) => each[index]);
    const of = (field) => median(apps.flatMap(({ results }) => results.map((result) => result[field])));
    return {
      name,
      startMs: median(apps.map(({ startMs }) => startMs)),
      hasOwnCore: apps.every(({ hasOwnCore }) => hasOwnCore),
      perSecond: of('perSecond'),
      p99Ms: of('p99Ms'),
      cpuMicros: of('cpuMicros'),
      serverCpuMicros: of('serverCpuMicros'),
      clientCpuMicros: of('clientCpuMicros'),
      profile: apps.at(-1).profile,
    };
  });
}

function section(framework, apps, { profileOf }) {
  const [unguarded] = apps;
  const head = [
    '',
    'requests/s',
    'of the unguarded',
    'CPU of the app',
    'beyond the unguarded',
    'Redis CPU',
    'client CPU',
    'p99',
    'start-up',
  ];
  const rows = apps.map(({ name, perSecond, cpuMicros, serverCpuMicros, clientCpuMicros, p99Ms, startMs }) => [
    name,
    perSecond.toFixed(0),
    percent(perSecond / unguarded.perSecond),
    micros(cpuMicros, 0),
    micros(cpuMicros - unguarded.cpuMicros, 0),
    micros(serverCpuMicros),
    micros(clientCpuMicros, 0),
    `${p99Ms} ms`,
    `${startMs.toFixed(0)} ms`,
  ]);
  return [
    `## Requests of a Nest app on ${framework}`,
    `${CONNECTIONS} connections, from another process; medians of several processes of each app, since one is luckier than another with what its engine makes of it. ${unguarded.hasOwnCore ? OWN_CORE : SHARED_CORES} What two more headers cost, however little is counted, the second row tells. On Express processes of one app differ by more than limits cost: less than 20 µs says nothing there.`,
    table(head, rows),
    ...apps.flatMap(({ name, profile }) => profileOf(name, profile)),
  ];
}

const onFramework = (name, framework) => ({
  name,
  measure: (settings) => measure(framework, settings),
  section: (apps, page) => section(framework, apps, page),
});

export const onExpress = onFramework('requests', 'Express');
export const onFastify = onFramework('requests:fastify', 'Fastify');
