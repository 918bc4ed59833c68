/** A process that consumes units of a limit as fast as it can, with the built package, and tells how many it was allowed so far. */
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { LimiterService, RateLimitModule } from '../../../dist/index.js';
import { PATIENCE } from '../redis/patience.mjs';

const { url, prefix, name, limit, keys, seed } = JSON.parse(process.argv[2]);
const module = RateLimitModule.forRoot({ redis: url, prefix, timeout: PATIENCE, define: { [name]: limit } });
const app = await NestFactory.createApplicationContext(module, { logger: false });
const limiter = app.get(LimiterService).for(name);
let allowed = 0;
for (let i = seed; ; i++) {
  const asked = Array.from({ length: 8 }, (_, at) => limiter.consume(`user:${(i * 31 + at * 7) % keys}`, 1 + (at % 3)));
  const decisions = await Promise.all(asked);
  decisions.forEach((decision, at) => (allowed += decision.allowed ? 1 + (at % 3) : 0));
  // The channel to the parent keeps the process alive.
  process.send({ allowed });
}
