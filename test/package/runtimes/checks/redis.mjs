import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { until, withLimiters } from './apps.mjs';
import { block, holdAll } from './limits.mjs';

const url = process.env.TEST_REDIS_URL;

/** Gives a connection to a function, and closes it behind it. */
const CLIENTS = {
  'a URL (ioredis)': (take) => take(url),
  ioredis: async (take) => {
    const client = new Redis(url);
    try {
      return await take(client);
    } finally {
      client.disconnect();
    }
  },
  'node-redis': async (take) => {
    const client = await createClient({ url }).connect();
    try {
      return await take(client);
    } finally {
      await client.close();
    }
  },
};

export const redis = Object.fromEntries(
  Object.entries(CLIENTS).flatMap(([name, withClient]) => {
    const withApp = (options, take) =>
      withClient((client) => withLimiters({ redis: client, prefix: randomUUID(), timeout: '10s', ...options }, take));
    return [
      [`limits on Redis, of all algorithms, by ${name}`, () => withApp({}, (limiters) => holdAll(limiters, 'redis'))],
      [`blockFor on Redis, by ${name}`, () => withApp({}, block)],
      [`prefetch, by ${name}`, () => withApp({}, prefetch)],
      [`setRate over two apps, by ${name}`, () => withClient(changeRate)],
    ];
  }),
);

async function prefetch(limiters) {
  const units = { units: 50, ttl: '5s' };
  const limiter = limiters.for({ name: 'all', algo: 'fixed-window', rate: 200, interval: '1h', prefetch: units });
  const sources = new Set();
  let allowed = 0;
  for (let call = 0; call < 210; call++) {
    const decision = await limiter.consume('all');
    sources.add(decision.source);
    if (decision.allowed) allowed++;
  }
  assert.equal(allowed, 200);
  assert.ok(sources.has('prefetch'), [...sources].join());
}

/** One app changes a rate, and another learns of it. */
async function changeRate(client) {
  const define = { api: { algo: 'fixed-window', rate: 5, interval: '1h' } };
  const options = { redis: client, prefix: randomUUID(), timeout: '10s', define };
  await withLimiters(options, (changing) =>
    withLimiters(options, async (following) => {
      assert.equal((await following.for('api').peek('someone')).quota, 5);
      await changing.setRate('api', { rate: 2 });
      await until(async () => (await following.for('api').peek('someone')).quota === 2);
    }),
  );
}
