/**
 * Jobs of many tenants on one BullMQ queue, each tenant with a rate of its own: how often a job is delayed, whether a tenant's rate is
 * exceeded in any stretch, how much of what the rates allow stays idle, and what a worker that is killed loses or doubles.
 * `node bench/bullmq/main.mjs [--jobs 20000] [--tenants 100] [--workers 4] [--rate 5] [--interval 2000] [--burst 5] [--only nestjs-sluice] [--no-kill]`,
 * after `npm run build`.
 */
import { parseArgs } from 'node:util';
import { startRedisProcess } from '../../test/support/redis/redis-process.mjs';
import { contenders } from './contenders.mjs';
import { runJobs } from './run.mjs';
import { summaryOf, table } from './summary.mjs';

const { values } = parseArgs({
  options: {
    jobs: { type: 'string', default: '20000' },
    tenants: { type: 'string', default: '100' },
    workers: { type: 'string', default: '4' },
    concurrency: { type: 'string', default: '25' },
    rate: { type: 'string', default: '5' },
    interval: { type: 'string', default: '2000' },
    burst: { type: 'string', default: '5' },
    'work-ms': { type: 'string', default: '20' },
    only: { type: 'string' },
    kill: { type: 'boolean', default: true },
  },
  allowNegative: true,
});
const number = (name) => Number(values[name]);
const terms = {
  jobs: number('jobs'),
  tenants: number('tenants'),
  workers: number('workers'),
  concurrency: number('concurrency'),
  workMs: number('work-ms'),
  limit: { algo: 'gcra', rate: number('rate'), interval: number('interval'), burst: number('burst') },
};
/** The shortest time in which the rates let all jobs start. */
const idealMs = ((terms.jobs / terms.tenants - terms.limit.burst) * terms.limit.interval) / terms.limit.rate;
/** One that takes much longer than that is told to stop. */
const timeoutMs = 1.5 * idealMs + 20_000;

console.log(`${JSON.stringify(terms)}: at least ${(idealMs / 1000).toFixed(1)} s`);
const rows = [];
for (const name of Object.keys(contenders)) {
  if (values.only !== undefined && !name.startsWith(values.only)) continue;
  const [queueServer, startServer] = await Promise.all([startRedisProcess(), startRedisProcess()]);
  try {
    const urls = { redisUrl: queueServer.url, startsUrl: startServer.url };
    const run = await runJobs({ ...terms, ...urls, contender: name, kill: values.kill, timeoutMs });
    rows.push({ contender: name, ...summaryOf(run, terms) });
    console.log(JSON.stringify({ ...rows.at(-1), counts: run.counts }));
  } finally {
    await Promise.all([queueServer.stop(), startServer.stop()]);
  }
}
console.log(table(rows));
