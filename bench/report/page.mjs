/** Writes docs/benchmarks.md and its charts. */
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus, totalmem, type } from 'node:os';
import { format, resolveConfig } from 'prettier';
import { bars, curve } from './chart.mjs';
import { reasons } from './reasons.mjs';
import { targets } from './targets.mjs';

const docs = new URL('../../docs/', import.meta.url);

const thousands = (value) => `${(value / 1000).toFixed(value < 10_000 ? 1 : 0)} k/s`;
const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

function caseSection({ title, results }) {
  const [first] = results;
  const timed = first.p50Micros !== undefined;
  const onRedis = first.serverCpuMicros !== undefined;
  const rows = results.map(({ name, perSecond, cpuMicros, serverCpuMicros, p50Micros, p99Micros }) => [
    name,
    thousands(perSecond),
    `${(first.perSecond / perSecond).toFixed(2)} x`,
    `${cpuMicros.toFixed(1)} µs`,
    ...(onRedis ? [`${serverCpuMicros.toFixed(2)} µs`] : []),
    ...(timed ? [`${p50Micros.toFixed(0)} µs`, `${p99Micros.toFixed(0)} µs`] : []),
  ]);
  const head = [
    '',
    'decisions',
    `${first.name} is`,
    'client CPU each',
    ...(onRedis ? ['Redis CPU each'] : []),
    ...(timed ? ['p50', 'p99'] : []),
  ];
  return `### ${title[0].toUpperCase()}${title.slice(1)}\n\n${table(head, rows)}`;
}

export async function write({ cases, http, memory, growth, versions, quick }) {
  await mkdir(docs, { recursive: true });
  const charts = {
    'benchmarks-keys.svg': bars('10,000 keys, 256 in flight', cases.find(({ title }) => title.includes('256')).results),
    'benchmarks-hot.svg': bars('one hot key, 256 in flight', cases.find(({ title }) => title.includes('hot')).results),
    'benchmarks-growth-keys.svg': curve('as keys grow', growth.keys, { xName: 'keys' }),
    'benchmarks-growth-log.svg': curve('as a sliding log grows', growth.log, { xName: 'rate' }),
    'benchmarks-growth-limits.svg': curve('as a check has more limits', growth.limits, { xName: 'limits', log: false }),
  };
  for (const [name, svg] of Object.entries(charts)) await writeFile(new URL(name, docs), svg);
  const reached = targets({ cases, http, memory });
  const httpRows = http.map(({ name, perSecond, cpuMicros, serverCpuMicros, p99Ms, startMs }) => [
    name,
    perSecond.toFixed(0),
    `${((100 * perSecond) / http[0].perSecond).toFixed(0)} %`,
    `${cpuMicros.toFixed(0)} µs`,
    `${(cpuMicros - http[0].cpuMicros).toFixed(0)} µs`,
    `${serverCpuMicros.toFixed(1)} µs`,
    `${p99Ms} ms`,
    `${startMs.toFixed(0)} ms`,
  ]);
  const page = `# Benchmarks

Made by \`npm run bench\`${quick ? ' -- --quick' : ''}: all contenders in one run, in alternating rounds, on the same Redis; medians. Before one is timed it has to prove that it limits. Ours is the packed tarball, called by its public names (\`Limiter.consume\`, \`LimiterService.check\`, the global guard) with default options; the limits are token buckets unless told otherwise.

${table(
  ['machine', ''],
  [
    ['date', new Date().toISOString().slice(0, 10)],
    ['processor', `${cpus().length} x ${cpus()[0]?.model.trim() ?? 'unknown'}`],
    ['memory', `${(totalmem() / 2 ** 30).toFixed(1)} GiB`],
    ['system', type()],
    ...Object.entries(versions),
  ],
)}

Client and server share the processors, so what one takes the other lacks: read the ratios, not the figures.

## What we want to reach

${table(
  ['', 'wanted', 'measured', ''],
  reached.map(({ what, target, value, reached: yes }) => [
    what,
    target,
    value.toFixed(2),
    yes ? 'reached' : 'not reached',
  ]),
)}

${reasons(reached)}
![10,000 keys](benchmarks-keys.svg)

![one hot key](benchmarks-hot.svg)

## Decisions

${cases.map(caseSection).join('\n\n')}

## Requests of a Nest app on Express

64 connections, from another process. Client, app and Redis share the processors, so the processor time a request tells more than the requests a second.

${table(['', 'requests/s', 'of the unguarded', 'CPU of the app', 'beyond the unguarded', 'Redis CPU', 'p99', 'start-up'], httpRows)}

## Memory on Redis

${table(
  ['algorithm', 'bytes of a key of 20 bytes'],
  [...memory.rows.map(({ name, bytes }) => [name, bytes]), ['sliding-log', `${memory.logged} a request`]],
)}

## How cost grows

![keys](benchmarks-growth-keys.svg)

![sliding log](benchmarks-growth-log.svg)

![limits](benchmarks-growth-limits.svg)

${table(
  ['keys', 'decisions', 'Redis memory'],
  growth.keys.map(({ x, perSecond, megabytes }) => [
    x.toLocaleString('en'),
    thousands(perSecond),
    `${megabytes.toFixed(0)} MB`,
  ]),
)}

${table(
  ['rate of a sliding log', 'decisions', 'Redis memory'],
  growth.log.map(({ x, perSecond, megabytes }) => [
    x.toLocaleString('en'),
    thousands(perSecond),
    `${megabytes.toFixed(0)} MB`,
  ]),
)}

${table(
  ['limits of a check', 'checks'],
  growth.limits.map(({ x, perSecond }) => [x, thousands(perSecond)]),
)}
`;
  const style = await resolveConfig(new URL('benchmarks.md', docs));
  await writeFile(new URL('benchmarks.md', docs), await format(page, { ...style, parser: 'markdown' }));
  return reached;
}
