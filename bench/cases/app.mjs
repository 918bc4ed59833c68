/** A Nest app as apps are: 20 routes, a limit of the module and one of each route, and few connections. */
import { fileURLToPath } from 'node:url';
import { compareApps } from '../apps.mjs';
import { stackedBars } from '../report/chart.mjs';
import { micros, percent, table, whole } from '../report/format.mjs';
import { pathsOf } from './app-paths.mjs';

const SERVER = fileURLToPath(new URL('app-server.mjs', import.meta.url));

const CONNECTIONS = [1, 8, 64];
const VARIANTS = {
  unguarded: 'without a guard',
  sluice: 'nestjs-sluice',
  throttler: '@nestjs/throttler',
};

async function measure({ url, processes, appRounds: rounds, seconds, profile, quick }) {
  const args = (variant) => [variant, url];
  const connections = quick ? [8, 64] : CONNECTIONS;
  const options = { server: SERVER, args, variants: VARIANTS, paths: pathsOf(), connections };
  const apps = await compareApps({ ...options, url, processes, rounds, seconds, profile });
  const [unguarded] = apps;
  return apps.map((app) => ({
    ...app,
    loads: app.loads.map((load, index) => ({
      ...load,
      beyondMicros: load.cpuMicros - unguarded.loads[index].cpuMicros,
    })),
  }));
}

function chartOf(apps) {
  const limited = apps.filter(({ name }) => name !== VARIANTS.unguarded);
  const rows = limited[0].loads.flatMap(({ connections }, index) =>
    limited.map(({ name, loads }) => ({
      name: `${name}, ${connections} connection${connections === 1 ? '' : 's'}`,
      values: [loads[index].serverCpuMicros, Math.max(0, loads[index].beyondMicros)],
    })),
  );
  return stackedBars('What two limits cost a request', rows, ['Redis', 'app'], 'µs');
}

function section(apps, { goalsOf, profileOf }) {
  const [unguarded] = apps;
  const rows = unguarded.loads.flatMap(({ connections, perSecond: most }, index) =>
    apps.map(({ name, loads }) => {
      const { perSecond, cpuMicros, beyondMicros, serverCpuMicros, p50Ms, p99Ms } = loads[index];
      return [
        whole(connections),
        name,
        perSecond.toFixed(0),
        percent(perSecond / most),
        micros(cpuMicros, 0),
        micros(beyondMicros, 0),
        micros(serverCpuMicros),
        `${p50Ms} ms`,
        `${p99Ms} ms`,
      ];
    }),
  );
  const head = [
    'connections',
    '',
    'requests/s',
    'of the unguarded',
    'CPU of the app',
    'beyond the unguarded',
    'Redis CPU',
    'p50',
    'p99',
  ];
  return [
    '## An app with 20 routes',
    'A Nest app on Express with a limit of the module and one of each route; the client calls the routes in turn. Medians of several processes of each app.',
    table(head, rows),
    ...goalsOf('app'),
    ...apps.flatMap(({ name, profile }) => profileOf(name, profile)),
  ];
}

const picture = (apps, { chart }) => chart('app', chartOf(apps));

export const app = { name: 'app', measure, section, picture };
