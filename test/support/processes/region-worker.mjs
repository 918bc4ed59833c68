/**
 * One of several instances of regions, each a process with the built package. It asks for one key of a limit for as long as its input
 * says, and publishes every 20 ms what was allowed since: a list of times, in milliseconds, before and after each.
 */
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LimiterService, RateLimitModule } from '../../../dist/index.js';

const { url, home, region, prefix, limit, forMs, perSecond } = JSON.parse(process.argv[2]);
const EVERY_MS = 10;

class AppModule {}
const define = { api: { ...limit, scope: 'world' } };
Module({ imports: [RateLimitModule.forRoot({ redis: url, regions: { name: region, home }, prefix, define })] })(
  AppModule,
);
const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
const api = app.get(LimiterService).for('api');
const now = () => performance.timeOrigin + performance.now();

process.send({ ready: true });
await new Promise((resolve) => process.once('message', resolve));

let uses = [];
const timer = setInterval(() => process.send({ uses: uses.splice(0) }), 20);
const open = new Set();
async function ask() {
  const before = now();
  const { allowed } = await api.consume('user:1');
  if (allowed) uses.push([before, now()]);
}
for (const end = now() + forMs; now() < end;) {
  for (let asked = 0; asked < (perSecond * EVERY_MS) / 1000; asked++) {
    const asking = ask()
      .catch(() => undefined)
      .finally(() => open.delete(asking));
    open.add(asking);
  }
  await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
}
await Promise.all(open);
clearInterval(timer);
process.send({ uses });
await app.close();
process.disconnect();
