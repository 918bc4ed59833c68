/** A process with a console, of the built package, which refuses some requests; it tells its id, and then runs on. */
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { LimiterService, RateLimitModule } from '../../../dist/index.js';
import { RateLimitConsoleModule } from '../../../dist/console/index.js';
import { PATIENCE } from '../redis/patience.mjs';

const { url, prefix, define, name, key, times } = JSON.parse(process.argv[2]);
const imports = [
  RateLimitModule.forRoot({ redis: url, prefix, timeout: PATIENCE, define }),
  RateLimitConsoleModule.forRoot({ guards: 'none' }),
];
const app = await NestFactory.createApplicationContext({ module: class AppModule {}, imports }, { logger: false });
const limiter = app.get(LimiterService, { strict: false }).for(name);
for (let call = 0; call < times; call++) await limiter.consume(key);
process.on('message', () => void app.close().then(() => process.exit(0)));
// The channel to the parent keeps the process alive.
process.send('counted');
