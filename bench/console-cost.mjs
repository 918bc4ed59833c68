// What the console costs: `node bench/console-cost.mjs [pairs]`, after `npm run build`. Each run is a process of its own, with the console
// and without it in turn, and tells the processor time of its checks; REDIS_URL names a server.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const SELF = fileURLToPath(import.meta.url);
const IN_FLIGHT = 256;
const KEYS = 1000;
const CHECKS = { redis: 300_000, process: 1_500_000 };
const SLICES = 20;

const [first, ...rest] = process.argv.slice(2);
if (first === 'run') await run(...rest);
else await compare(Number(first ?? 10));

async function compare(pairs) {
  for (const place of ['process', 'redis']) {
    if (place === 'redis' && process.env.REDIS_URL === undefined) continue;
    const ratios = [];
    const costs = { without: [], with: [] };
    for (let pair = 0; pair < pairs; pair++) {
      const order = pair % 2 === 0 ? ['without', 'with'] : ['with', 'without'];
      for (const which of order) {
        const { stdout } = await promisify(execFile)(process.execPath, [SELF, 'run', place, which]);
        costs[which].push(Number(stdout));
      }
      ratios.push(costs.with.at(-1) / costs.without.at(-1));
    }
    const [without, withIt, ratio] = [costs.without, costs.with, ratios].map(median);
    console.log(
      `${place}: ${without.toFixed(3)} us a check without, ${withIt.toFixed(3)} us with the console; ` +
        `median of ${pairs} pairs: ${((ratio - 1) * 100).toFixed(1)} %`,
    );
  }
}

function median(values) {
  const sorted = values.toSorted((one, other) => one - other);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}

async function run(place, which) {
  await import('reflect-metadata');
  const { NestFactory } = await import('@nestjs/core');
  const { LimiterService, RateLimitModule } = await import('../dist/index.js');
  const { RateLimitConsoleModule } = await import('../dist/console/index.js');
  const imports = [
    RateLimitModule.forRoot({
      ...(place === 'redis' && { redis: process.env.REDIS_URL, prefix: `cost-${process.pid}` }),
      define: { api: { algo: 'gcra', rate: 1_000_000, interval: '1s' } },
    }),
  ];
  if (which === 'with') imports.push(RateLimitConsoleModule.forRoot({ guards: 'none' }));
  const app = await NestFactory.createApplicationContext({ module: class AppModule {}, imports }, { logger: false });
  const limiter = app.get(LimiterService, { strict: false }).for('api');
  const keys = Array.from({ length: KEYS }, (_, index) => `user:${index}`);
  const checks = CHECKS[place];
  await consume(limiter, keys, checks / 2);
  const slices = [];
  for (let slice = 0; slice < SLICES; slice++) {
    const before = process.cpuUsage();
    await consume(limiter, keys, checks / SLICES);
    const { user, system } = process.cpuUsage(before);
    slices.push((user + system) / (checks / SLICES));
  }
  // The slices that the machine disturbed least.
  console.log(slices.toSorted((one, other) => one - other)[Math.floor(SLICES / 10)]);
  await app.close();
}

async function consume(limiter, keys, checks) {
  let next = 0;
  const worker = async () => {
    while (next < checks) await limiter.consume(keys[next++ % KEYS]);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
}
