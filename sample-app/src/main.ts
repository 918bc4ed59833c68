import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RateLimitHealthIndicator } from 'nestjs-sluice';
import { AppModule, CONSOLE_PATH } from './app.module.js';
import { Settings } from './settings/settings.js';

/** The guard of this demo believes everyone, so only this machine may ask. */
const HOST = '127.0.0.1';

async function main(): Promise<void> {
  const app = await NestFactory.create(AppModule, { logger: ['warn', 'error'], abortOnError: false });
  app.enableShutdownHooks();
  const settings = app.get(Settings);
  try {
    await app.listen(settings.port, HOST);
  } catch (error) {
    await app.close();
    throw isPortTaken(error) ? new Error(`Port ${settings.port} is taken; set another: PORT=3001`) : error;
  }
  const origin = (await app.getUrl()).replace(/\/$/, '');
  console.log(`
Counters: ${await counters(app)}.
Jobs: ${settings.redisUrl === undefined ? 'set REDIS_URL to have a queue of BullMQ' : jobs(origin)}.
Console: ${origin}/${CONSOLE_PATH}, with visitors that are made up (DEMO_TRAFFIC=off leaves them out).
For a terminal: curl ${origin}/tour has a curl line for each route.

See it work: ${origin}/`);
}

/** How to give the queue something to do. */
function jobs(origin: string): string {
  return `curl -d "shop=acme" ${origin}/syncs adds three of a shop, curl ${origin}/syncs shows when they were done`;
}

/** Where the counters live at the moment. */
async function counters(app: INestApplication): Promise<string> {
  const { store } = app.get(Settings);
  const { redis } = await app.get(RateLimitHealthIndicator).isHealthy('redis');
  return redis?.source === 'fallback' ? `in this process, until there is an answer of ${store}` : store;
}

function isPortTaken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
