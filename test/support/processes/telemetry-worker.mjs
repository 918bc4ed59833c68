/**
 * An app with the built package, in a process of its own. Its input says where the package is and its option `telemetry`; its result
 * is what was decided, which files of OpenTelemetry were loaded, and what was logged.
 */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { runTask } from './process-task.mjs';

const loaded = () => Object.keys(createRequire(import.meta.url).cache).filter((path) => path.includes('opentelemetry'));

await runTask(async ({ entry, telemetry }) => {
  const { RateLimitModule, LimiterService } = await import(pathToFileURL(entry).href);
  const lines = [];
  const keep = (level) => (message) => lines.push(`${level}: ${message}`);
  const logger = { log: () => undefined, warn: keep('warn'), error: keep('error') };
  const options = telemetry === null ? {} : { telemetry };
  try {
    const module = { module: class AppModule {}, imports: [RateLimitModule.forRoot(options)] };
    const app = await NestFactory.createApplicationContext(module, { logger, abortOnError: false });
    const limiter = app.get(LimiterService).for({ algo: 'fixed-window', rate: 1, interval: '1m' });
    const allowed = [(await limiter.consume('a')).allowed, (await limiter.consume('a')).allowed];
    await app.close();
    return { allowed, loaded: loaded().length, lines };
  } catch (error) {
    return { error: `${error.name}: ${error.message}`, loaded: loaded().length };
  }
});
