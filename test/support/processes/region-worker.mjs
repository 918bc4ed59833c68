/**
 * One of several instances in regions, each a process with the built package. It calls one key of a limit from 'go' to 'stop'.
 * Every 20 ms it sends the times, in milliseconds, before and after each call that was allowed.
 */
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LimiterService, RateLimitModule } from '../../../dist/index.js';

const { url, home, region, prefix, limit, perSecond } = JSON.parse(process.argv[2]);
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
let stopped = false;
process.once('message', () => (stopped = true));
// oxlint-disable-next-line no-unmodified-loop-condition -- The listener above sets it.
while (!stopped) {
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
