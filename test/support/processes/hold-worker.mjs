/** A process that reserves units of a limit and never settles them, with the built package; it tells the reservation's id. */
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { LimiterService, RateLimitModule } from '../../../dist/index.js';
import { PATIENCE } from '../redis/patience.mjs';

const { url, prefix, name, limit, key, cost } = JSON.parse(process.argv[2]);
const module = RateLimitModule.forRoot({ redis: url, prefix, timeout: PATIENCE, define: { [name]: limit } });
const app = await NestFactory.createApplicationContext(module, { logger: false });
const { id } = await app.get(LimiterService).for(name).reserve(key, { cost });
// The channel to the parent keeps the process alive.
process.send({ id });
