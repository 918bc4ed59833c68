/**
 * One of several processes, each an app with the built package. A worker consumes the keys of its input and tells, for every
 * decision, the key, the quota and whether it was allowed, until it is told to stop; then it waits for the last change and tells
 * what holds. The changer changes rates, modes and lists meanwhile.
 */
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LimiterService, RateLimitModule } from '../../../dist/index.js';
import { runTask, tell } from './process-task.mjs';
import { PATIENCE } from '../redis/patience.mjs';

class AppModule {}

/** So many that a change which an instance missed is seldom hidden by a later one. */
const SINGLE = Array.from({ length: 40 }, (_, index) => `tenant:${index}`);
const PATTERNS = [undefined, 'tenant:*', 'tenant:a*', 'tenant:acme', ...SINGLE];

/** However late the machine lets it begin. */
const FEWEST_TURNS = 2000;
/** After so long the last change is known, and what was to expire has expired. */
const SETTLED_MS = 1000;

await runTask(async ({ url, prefix, keys, changes, rates }, startTogether, stopped) => {
  const define = { api: { algo: 'sliding-log', rate: rates[0], interval: '1h' } };
  Module({ imports: [RateLimitModule.forRoot({ redis: url, prefix, define, guard: false, timeout: PATIENCE })] })(
    AppModule,
  );
  const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  const service = app.get(LimiterService);
  const api = service.for('api');
  await startTogether();
  const seen = {};
  const counts = { asked: 0, off: 0, denied: 0, exempt: 0 };
  const run = { done: false };
  void stopped.then(() => (run.done = true));
  if (changes > 0) {
    await change(service, changes, rates);
    tell('changed');
  } else {
    for (let turn = 0; !run.done || turn < FEWEST_TURNS; turn++) {
      const key = keys[turn % keys.length];
      const { allowed, quota, source } = await api.consume(key);
      counts.asked++;
      if (source === 'memory') counts.off++;
      if (source === 'list') counts[allowed ? 'exempt' : 'denied']++;
      const of = (seen[key] ??= { quotas: [], charged: 0 });
      if (!of.quotas.includes(quota)) of.quotas.push(quota);
      // In shadow mode all are allowed; what was charged, the counter tells.
      if (allowed && source !== 'list') of.charged++;
      if (turn % 16 === 0) await sleep(0);
    }
  }
  await stopped;
  await sleep(SETTLED_MS);
  const last = await service.changes({ last: 1 });
  const rateOf = async (key) => [await service.getRate('api', { key }), await service.getMode('api', { key })];
  const all = [...keys, ...SINGLE];
  const held = await Promise.all(all.map(rateOf));
  const live = all.map((key) => [
    api.rule.limitFor(key).quota,
    api.rule.limitFor(key).off,
    api.rule.limitFor(key).shadow,
  ]);
  const listed = await Promise.all(
    [...all, 'user:1'].map(async (key) => [
      (await service.listEntries({ key })).entries[0],
      (await service.listEntries({ key, limit: 'api' })).entries[0],
    ]),
  );
  const lists = [listed, await service.listEntries({ count: 1000 })];
  await app.close();
  return { lists, seen, counts, last, held, live };
});

async function change(service, changes, rates) {
  for (let turn = 0; turn < changes; turn++) {
    const key = PATTERNS[turn % PATTERNS.length];
    const at = key === undefined ? {} : { key };
    const rate = rates[1 + ((turn * 7) % (rates.length - 1))];
    const what = (turn * 5) % 11;
    if (turn % 3 === 2) {
      await changeLists(service, turn);
      continue;
    }
    if (what === 10) {
      const [last] = await service.changes({ last: 1 });
      await service.rollback(Math.max(0, (last?.version ?? 0) - 3));
    } else if (what < 6) await service.setRate('api', { rate }, at);
    else if (what === 6) await service.clearRate('api', at);
    else if (what === 7) await service.setMode('api', 'off', { key: 'tenant:off' });
    else if (what === 8) await service.setRate('api', { rate }, { ...at, expiresIn: 20 });
    else await service.clearMode('api', { key: 'tenant:off' });
  }
}

async function changeLists(service, turn) {
  const entries = [{ identity: 'tenant:abel' }, { pattern: 'tenant:*' }, { identity: 'user:1' }, { ip: '10.0.0.0/8' }];
  const entry = entries[turn % entries.length];
  const limit = turn % 2 === 0 ? {} : { limit: 'api' };
  const what = turn % 5;
  if (what < 2) await service.deny(entry, limit);
  else if (what === 2) await service.allow(entry, { ...limit, expiresIn: 20 });
  else await service.unlist(entry, limit);
}
