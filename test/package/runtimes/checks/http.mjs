import assert from 'node:assert/strict';
import { get } from 'node:http';
import { connect } from 'node:net';
import { Controller, Res } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { RateLimit } from 'nestjs-sluice';
import { decorateClass, route, until, withServer } from './apps.mjs';

const ADAPTERS = { Express: ExpressAdapter, Fastify: FastifyAdapter };

class ReportsController {
  limited() {
    return 'reports';
  }

  queued() {
    return 'done';
  }

  // Never sends a response.
  silent() {}
}
route(ReportsController, 'limited', RateLimit({ name: 'reports', algo: 'gcra', rate: 1, interval: '1h' }));
route(ReportsController, 'queued', RateLimit({ name: 'queue', algo: 'leaky-bucket', rate: 10, interval: '1s' }));
Res()(ReportsController.prototype, 'silent', 0);
route(ReportsController, 'silent', RateLimit({ name: 'slots', algo: 'concurrency', limit: 1, ttl: '1h' }));
decorateClass(ReportsController, Controller());

export function http(name) {
  const withApp = (take) => withServer(new ADAPTERS[name](), {}, [ReportsController], take);
  return {
    [`429 with headers and body, on ${name}`]: () => withApp(refuse),
    [`requests that a leaky-bucket delays, on ${name}`]: () => withApp(delay),
    [`concurrency, whose clients reset the connection, on ${name}`]: () => withApp(reset),
  };
}

async function refuse(port) {
  const allowed = await ask(port, '/limited');
  assert.deepEqual([allowed.status, allowed.body], [200, 'reports']);
  assert.match(allowed.headers.ratelimit, /^"reports";r=0;t=\d+$/);
  assert.match(allowed.headers['ratelimit-policy'], /^"reports";q=1/);
  const refused = await ask(port, '/limited');
  assert.equal(refused.status, 429);
  assert.match(refused.headers.ratelimit, /^"reports";r=0;t=3\d{3}$/);
  assert.match(refused.headers['retry-after'], /^3[56]\d\d$/);
  const { statusCode, message } = JSON.parse(refused.body);
  assert.equal(statusCode, 429);
  assert.equal(typeof message, 'string');
}

async function delay(port) {
  const start = performance.now();
  const responses = await Promise.all([1, 2, 3].map(() => ask(port, '/queued')));
  assert.deepEqual(
    responses.map(({ status }) => status),
    [200, 200, 200],
  );
  const tookMs = performance.now() - start;
  assert.ok(tookMs > 150, `three requests took ${tookMs} ms`);
}

/**
 * A slot is free again once its client has gone, though its handler never answers and the lease would last for an hour: then a
 * request gets it, and no response.
 */
async function reset(port) {
  for (let round = 0; round < 2; round++) {
    const client = connect(port, '127.0.0.1');
    client.on('error', () => undefined);
    client.write('GET /silent HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await until(async () => (await ask(port, '/silent', 300)).status === 429);
    client.resetAndDestroy();
  }
  await until(async () => (await ask(port, '/silent', 300)).status === undefined);
}

/** One request on a connection of its own. Without a response in time, its client resets the connection, and there is no status. */
function ask(port, path, timeoutMs = 30_000) {
  return new Promise((resolve, reject) => {
    const request = get({ port, host: '127.0.0.1', path, agent: false }, (response) => {
      clearTimeout(timer);
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (text) => (body += text));
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, body }));
    });
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      request.destroy();
      resolve({});
    }, timeoutMs);
    request.on('error', (error) => {
      clearTimeout(timer);
      if (!isLate) reject(error);
    });
  });
}
