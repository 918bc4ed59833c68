/**
 * A process that holds a unit of a `concurrency` limit until it is killed, with the built package. Its input says which; it
 * tells when it holds it.
 */
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { LimiterService, RateLimitModule } from '../../../dist/index.js';
import { PATIENCE } from '../redis/patience.mjs';

const { url, prefix, name, limit, key } = JSON.parse(process.argv[2]);
const module = RateLimitModule.forRoot({ redis: url, prefix, timeout: PATIENCE, define: { [name]: limit } });
const app = await NestFactory.createApplicationContext(module, { logger: false });
await app
  .get(LimiterService)
  .for(name)
  .hold(key, async () => {
    process.send('held');
    // The channel to the parent keeps the process alive.
    await new Promise(() => {});
  });
