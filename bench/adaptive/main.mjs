/**
 * An app under more load than it can take, with no limit, with a fixed limit of concurrency, and with an adaptive one: what it
 * answers in time, and how soon. `node bench/adaptive/main.mjs [--seconds 20] [--warm-up 15] [--rounds 1] [--path /pool]`, after
 * `npm run build`.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    'warm-up': { type: 'string', default: '15' },
    rounds: { type: 'string', default: '1' },
    path: { type: 'string', default: '/pool' },
    loads: { type: 'string', default: '0.5,1,2,4' },
    only: { type: 'string' },
  },
});
const here = (file) => fileURLToPath(new URL(file, import.meta.url));
const packagePath = pathToFileURL(here('../../dist/index.js')).href;

/** Requests a second that the work alone allows: 8 connections for 80 ms, and one thread for 8 ms. */
const CAPACITY = { '/pool': 100, '/cpu': 125 };
/** A caller that waits for so long has given up. */
const TIMEOUT_MS = 2000;
const SHARES = { critical: 0.2, default: 0.3, sheddable: 0.5 };

const of = { scope: 'instance', phase: 'middleware', key: 'global' };
const contenders = {
  'no limit': [],
  'concurrency 20': [{ ...of, algo: 'concurrency', limit: 20, ttl: '10s' }],
  adaptive: [{ ...of, algo: 'adaptive' }],
};

const percentile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;

async function measure(limits, load) {
  const app = fork(here('app.mjs'), [JSON.stringify({ packagePath, limits })]);
  try {
    const [{ port }] = await once(app, 'message');
    const terms = {
      port,
      path: values.path,
      rate: CAPACITY[values.path] * load,
      seconds: Number(values.seconds),
      warmUpSeconds: Number(values['warm-up']),
      timeoutMs: TIMEOUT_MS,
      shares: SHARES,
    };
    const caller = fork(here('load.mjs'), [JSON.stringify(terms)]);
    const [{ counted }] = await once(caller, 'message');
    return counted;
  } finally {
    app.kill('SIGKILL');
  }
}

const median = (numbers) => numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)];
const ms = (value) => (Number.isNaN(value) ? '-' : value.toFixed(0));
const percent = (part, whole) => `${((100 * part) / whole).toFixed(0)} %`;

console.log(
  `GET ${values.path}, ${CAPACITY[values.path]} a second at most; load of the machine ${loadavg()[0].toFixed(1)}`,
);
console.log(
  '| load | limit | answered a second | p50 ms | p99 ms | p99 ms critical | shed critical | default | sheddable |',
);
console.log(
  '| ---- | ----- | ----------------- | ------ | ------ | --------------- | ------------- | ------- | --------- |',
);
for (const load of values.loads.split(',').map(Number)) {
  const found = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const [name, limits] of Object.entries(contenders)) {
      if (values.only === undefined || values.only === name) found[name].push(await measure(limits, load));
    }
  }
  for (const [name, rounds] of Object.entries(found)) {
    if (rounds.length === 0) continue;
    const rows = rounds.map((counted) => {
      const all = Object.values(counted)
        .flatMap(({ latencies }) => latencies)
        .toSorted((one, other) => one - other);
      const critical = counted.critical.latencies.toSorted((one, other) => one - other);
      return {
        goodput: all.length / Number(values.seconds),
        p50: percentile(all, 0.5),
        p99: percentile(all, 0.99),
        critical: percentile(critical, 0.99),
        shed: Object.values(counted).map(({ sent, latencies }) => percent(sent - latencies.length, sent)),
      };
    });
    const row = (key) => median(rows.map((each) => each[key]));
    const cells = [`${load} x`, name, row('goodput').toFixed(0), ms(row('p50')), ms(row('p99')), ms(row('critical'))];
    console.log(`| ${[...cells, ...rows[0].shed].join(' | ')} |`);
  }
}
console.log(`load of the machine at the end ${loadavg()[0].toFixed(1)}`);
