/**
 * Runs the vectors against the script on a Redis: `npx nestjs-sluice call --script > sluice.lua`, then
 * `node run.mjs sluice.lua redis://localhost:6379`. Exits with 1 if a reply differs.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { Redis } from 'ioredis';

const [, , script = 'sluice.lua', url = 'redis://localhost:6379'] = process.argv;
const redis = new Redis(url);
const sha = await redis.script('LOAD', readFileSync(script, 'utf8'));
const prefix = `vectors-${process.pid}-${Date.now()}`;
const folder = new URL('.', import.meta.url);
let ran = 0;
let wrong = 0;

/** A `*` stands for any number: that of held units is the server's. */
const isSame = (expected, reply) =>
  expected === undefined ||
  (expected.length === reply.length && expected.every((each, index) => each === '*' || each === reply[index]));

for (const file of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
  const { cases } = JSON.parse(readFileSync(new URL(file, folder), 'utf8'));
  for (const { name, steps } of cases) {
    const replies = [];
    for (const [index, { redis: call }] of steps.entries()) {
      if (call === undefined) continue;
      const keys = call.keys.map((key) => key.replace('vectors', prefix));
      const program = call.program.replaceAll(/\{(\d+)\.(\d+)\}/g, (_, step, place) => replies[step][place]);
      replies[index] = await redis.evalsha(sha, keys.length, ...keys, program);
      ran++;
      if (isSame(call.reply, replies[index])) continue;
      wrong++;
      console.log(
        `${file}: ${name}: step ${index}: expected ${call.reply.join(',')}, received ${replies[index].join(',')}`,
      );
    }
  }
}
console.log(`${ran} steps, ${wrong} different`);
redis.disconnect();
process.exitCode = wrong > 0 || ran === 0 ? 1 : 0;
