// node --expose-gc startup.mjs <dist> <kind: plain|empty|equal|different>
import { createRequire } from 'node:module';
const [dist, kind, prof] = process.argv.slice(2);
const require = createRequire(dist + '/../package.json');
require('reflect-metadata');
const { Controller, Get, Module } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');
const { RateLimit, RateLimitModule } = await import(dist + '/index.js');
const ROUTES = 1000,
  PER = 10;
const decorate = (ds, target, key) => {
  for (const d of ds)
    key === undefined ? d(target) : d(target.prototype, key, Object.getOwnPropertyDescriptor(target.prototype, key));
};
function controllers(limited) {
  const list = [];
  let n = 0;
  for (let c = 0; c < ROUTES / PER; c++) {
    const methods = {};
    const C = { [`C${c}`]: class {} }[`C${c}`];
    for (let m = 0; m < PER; m++, n++) {
      const name = `m${m}`;
      Object.defineProperty(C.prototype, name, {
        value() {
          return n;
        },
        writable: true,
        configurable: true,
      });
      decorate([Get(name)], C, name);
      if (limited) {
        const i = kind === 'different' ? n : 0;
        decorate(
          [
            RateLimit(
              { name: 'a', algo: 'gcra', rate: 100 + i, interval: '1m' },
              { name: 'b', algo: 'fixed-window', rate: 1000 + i, interval: '1h' },
              { name: 'c', algo: 'token-bucket', rate: 10 + i, interval: '1s' },
            ),
          ],
          C,
          name,
        );
      }
    }
    Controller(`c${c}`)(C);
    list.push(C);
  }
  return list;
}
const limited = kind === 'equal' || kind === 'different';
const cs = controllers(limited);
class App {}
Module({ imports: kind === 'plain' ? [] : [RateLimitModule.forRoot({})], controllers: cs })(App);
gc();
gc();
const h0 = process.memoryUsage().heapUsed,
  c0 = process.cpuUsage();
let session;
if (prof) {
  const { Session } = await import('node:inspector/promises');
  session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: 200 });
  await session.post('Profiler.start');
}
const app = await NestFactory.create(App, { logger: false });
await app.init();
const c1 = process.cpuUsage(c0);
if (prof) {
  const { profile } = await session.post('Profiler.stop');
  const { writeFileSync } = await import('node:fs');
  writeFileSync(prof, JSON.stringify(profile));
}
gc();
gc();
const h1 = process.memoryUsage().heapUsed;
if (process.env.SNAP) {
  const v8 = require('node:v8');
  v8.writeHeapSnapshot(process.env.SNAP);
}
console.log(kind, Math.round((c1.user + c1.system) / 1000), 'ms', ((h1 - h0) / 1e6).toFixed(2), 'MB');
await app.close();
process.exit(0);
