/** Times Nest apps side by side, each in a process of its own. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import autocannon from 'autocannon';
import { Redis } from 'ioredis';
import { keepApart } from './cores.mjs';
import { median, serverMicros } from './measure.mjs';

/** The first second of an app costs three times as much a request. */
const WARM_UP = { connections: 64, duration: 2 };

async function start(server, args) {
  const child = fork(server, args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`an app ended with ${code}`);
  });
  // An app is stopped after its last answer.
  ended.catch(() => undefined);
  const answer = async () => (await Promise.race([once(child, 'message'), ended]))[0];
  const { url: at, startMs } = await answer();
  const ask = (question) => {
    child.send(question);
    return answer();
  };
  const stop = async () => {
    child.kill();
    await once(child, 'exit');
  };
  return { pid: child.pid, at, startMs, stop, ask, cpuMicros: async () => (await ask('cpu')).cpuMicros };
}

/** Requests of these paths in turn; no two connections begin with the same path. */
function load({ at }, paths, { connections, duration }) {
  const requests = paths.map((path) => ({ path }));
  let first = 0;
  const setupClient = (client) => {
    const from = first++ % requests.length;
    client.setRequests([...requests.slice(from), ...requests.slice(0, from)]);
  };
  return autocannon({ url: at, connections, duration, setupClient });
}

async function round(app, redis, paths, { connections, duration }) {
  const [appBefore, redisBefore] = [await app.cpuMicros(), await serverMicros(redis)];
  const before = process.cpuUsage();
  const { requests, latency, non2xx } = await load(app, paths, { connections, duration });
  if (non2xx > 0) throw new Error(`${app.name} refused ${non2xx} requests`);
  const { user, system } = process.cpuUsage(before);
  return {
    connections,
    perSecond: requests.average,
    p50Ms: latency.p50,
    p99Ms: latency.p99,
    cpuMicros: ((await app.cpuMicros()) - appBefore) / requests.total,
    serverCpuMicros: ((await serverMicros(redis)) - redisBefore) / requests.total,
    clientCpuMicros: (user + system) / requests.total,
  };
}

/** Times all apps once, each in a process of its own. */
async function generation(redis, { server, args, variants, paths, connections, rounds, seconds, profile }) {
  // The limits of apps would be used up in the end.
  await redis.flushall();
  const apps = [];
  try {
    for (const [variant, name] of Object.entries(variants)) {
      apps.push({ name, results: [], ...(await start(server, args(variant))) });
    }
    const cores = await keepApart(
      apps.map(({ pid }) => pid),
      redis,
    );
    try {
      for (const app of apps) await load(app, paths, WARM_UP);
      for (let i = 0; i < rounds; i++) {
        for (const each of connections) {
          for (const app of i % 2 === 0 ? apps : apps.toReversed()) {
            app.results.push(await round(app, redis, paths, { connections: each, duration: seconds }));
          }
        }
      }
      for (const app of apps) {
        if (!profile || !app.name.startsWith('nestjs-sluice')) continue;
        await app.ask('profile');
        await load(app, paths, { connections: connections.at(-1), duration: seconds });
        ({ profile: app.profile } = await app.ask('profiled'));
      }
    } finally {
      cores.end();
    }
    return apps.map(({ name, results, startMs, profile: top }) => ({
      name,
      results,
      startMs,
      profile: top,
      hasOwnCore: cores.areApart,
    }));
  } finally {
    for (const app of apps) await app.stop();
  }
}

/**
 * Times apps in several processes each, since the engine optimizes one better than another: `variants` are the
 * names by variant, `args(variant)` those of the process, `connections` the loads.
 * @returns for each app its medians at each load
 */
export async function compareApps({ url, processes, profile, variants, connections, ...options }) {
  const redis = new Redis(url);
  const generations = [];
  try {
    for (let left = processes; left > 0; left--) {
      const isProfiled = profile && left === 1;
      generations.push(await generation(redis, { ...options, variants, connections, profile: isProfiled }));
    }
  } finally {
    await redis.quit();
  }
  return Object.values(variants).map((name, index) => {
    const apps = generations.map((each) => each[index]);
    const results = apps.flatMap((app) => app.results);
    return {
      name,
      startMs: median(apps.map(({ startMs }) => startMs)),
      hasOwnCore: apps.every(({ hasOwnCore }) => hasOwnCore),
      loads: connections.map((each) => medians(results.filter((result) => result.connections === each))),
      profile: apps.at(-1).profile,
    };
  });
}

function medians(results) {
  const fields = Object.keys(results[0]);
  return Object.fromEntries(fields.map((field) => [field, median(results.map((result) => result[field]))]));
}
