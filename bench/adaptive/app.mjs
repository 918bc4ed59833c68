/**
 * A Nest app on Express, as a process: `GET /pool` waits for one of 8 connections, each of which is taken for 80 ms, as queries of a
 * database are; `GET /cpu` computes for 8 ms. What limits it is told by the first argument.
 */
import 'reflect-metadata';
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';

const { packagePath, limits } = JSON.parse(process.argv[2]);
const { RateLimitModule, rateLimitMiddleware } = await import(packagePath);

const CONNECTIONS = 8;
const QUERY_MS = 80;
const COMPUTE_MS = 8;

const pool = { free: CONNECTIONS, waiting: [] };

async function query() {
  if (pool.free > 0) pool.free--;
  else await new Promise((resolve) => pool.waiting.push(resolve));
  await sleep(QUERY_MS);
  const next = pool.waiting.shift();
  if (next === undefined) pool.free++;
  else next();
  return 'done';
}

function compute() {
  const end = performance.now() + COMPUTE_MS;
  const hash = createHash('sha256');
  while (performance.now() < end) hash.update('some bytes to hash');
  return hash.digest('hex');
}

/** Decorators as plain calls: this file is not compiled. */
function routes() {
  class WorkController {
    pool() {
      return query();
    }

    cpu() {
      return compute();
    }
  }
  for (const name of ['pool', 'cpu']) {
    Get(name)(WorkController.prototype, name, Object.getOwnPropertyDescriptor(WorkController.prototype, name));
  }
  Controller()(WorkController);
  return WorkController;
}

const priority = (context) => context.switchToHttp().getRequest().headers['x-priority'] ?? 'default';
const withPriority = limits.map((limit) => (limit.algo === 'adaptive' ? { ...limit, priority } : limit));

class AppModule {}
Module({ controllers: [routes()], imports: [RateLimitModule.forRoot({ limits: withPriority })] })(AppModule);

const app = await NestFactory.create(AppModule, { logger: false });
app.use(rateLimitMiddleware(app));
await app.listen(0, '127.0.0.1');
process.send({ port: app.getHttpServer().address().port });
process.once('disconnect', () => process.exit());
