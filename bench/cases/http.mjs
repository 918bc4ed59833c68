/**
 * Requests a second of a Nest app on Express or Fastify, the processor time that the app and Redis take for each, and how long the app takes
 * to start. Client, app and Redis share the processors, so the processor time tells more than the requests a second.
 */
import { fileURLToPath } from 'node:url';
import { compareApps } from '../apps.mjs';
import { micros, percent, table } from '../report/format.mjs';

const CONNECTIONS = 64;
const OWN_CORE = 'Each app has a processor to itself while it is timed; client and Redis share another.';
const SHARED_CORES =
  'Client, app and Redis share the processors, so the processor time a request tells more than the requests a second.';

const SERVER = fileURLToPath(new URL('http-server.mjs', import.meta.url));

const VARIANTS = {
  unguarded: 'without a guard',
  headers: 'a guard that only sets two headers',
  'memory-1': 'nestjs-sluice, 1 limit, in process',
  'memory-3': 'nestjs-sluice, 3 limits, in process',
  'redis-1': 'nestjs-sluice, 1 limit, Redis',
  'redis-3': 'nestjs-sluice, 3 limits, Redis',
  'throttler-1': '@nestjs/throttler, 1 limit, Redis',
  'throttler-3': '@nestjs/throttler, 3 limits, Redis',
};

const caseOf = (framework) => (framework === 'Express' ? 'requests' : 'requests:fastify');

async function measure(framework, { url, processes, httpRounds: rounds, seconds, profile }) {
  const args = (variant) => [framework, variant, url];
  const options = { server: SERVER, args, variants: VARIANTS, paths: ['/'], connections: [CONNECTIONS] };
  const apps = await compareApps({ ...options, url, processes, rounds, seconds, profile });
  return apps.map(({ loads: [load], ...app }) => ({ ...app, ...load }));
}

function section(framework, apps, { goalsOf, profileOf }) {
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
    `${CONNECTIONS} connections, from another process; medians of several processes of each app, since the engine optimizes one better than another. ${unguarded.hasOwnCore ? OWN_CORE : SHARED_CORES} The second row shows the cost of two more headers. On Express processes of one app differ by more than limits cost: less than 20 µs is within the noise.`,
    table(head, rows),
    ...goalsOf(caseOf(framework)),
    ...apps.flatMap(({ name, profile }) => profileOf(name, profile)),
  ];
}

const onFramework = (framework) => ({
  name: caseOf(framework),
  measure: (settings) => measure(framework, settings),
  section: (apps, page) => section(framework, apps, page),
});

export const onExpress = onFramework('Express');
export const onFastify = onFramework('Fastify');
