/** Bytes on Redis: of a key that is 20 bytes long, and of each request that a sliding log remembers. */
import { Redis } from 'ioredis';
import { RedisStore } from '../../dist/index.js';
import { CompiledLimit } from '../../dist/algorithms/limit.js';

const KEY_BYTES = 20;
const LOGGED = 10_000;

const ALGORITHMS = [
  { algo: 'gcra', rate: 100, interval: '1m' },
  { algo: 'token-bucket', rate: 100, interval: '1m' },
  { algo: 'leaky-bucket', rate: 100, interval: '1m' },
  { algo: 'fixed-window', rate: 100, interval: '1m' },
  { algo: 'calendar-window', rate: 100, period: 'day' },
  { algo: 'sliding-window', rate: 100, interval: '1m' },
];

export async function memory({ url }) {
  const redis = new Redis(url);
  await redis.flushall();
  const store = new RedisStore(redis, { prefix: 'p', timeoutMs: 60_000 });
  await store.open();
  const bytesOf = (key) => redis.memory('USAGE', key, 'SAMPLES', 0);
  const rows = [];
  for (const options of ALGORITHMS) {
    const limit = new CompiledLimit(options, { place: 'bench', name: 'n'.repeat(10) });
    const entry = { limit, identity: 'u', cost: 1 };
    for (let i = 0; i < 20; i++) await store.check([{ entries: [entry] }]);
    const [key] = await redis.keys('p:*');
    if (key.length !== KEY_BYTES) throw new Error(`the key ${key} is ${key.length} bytes long, wants ${KEY_BYTES}`);
    rows.push({ name: options.algo, bytes: await bytesOf(key) });
    await redis.flushall();
  }
  const limit = new CompiledLimit({ algo: 'sliding-log', rate: 1_000_000, interval: '1h' }, { place: 'bench' });
  for (let i = 0; i < LOGGED; i++) await store.check([{ entries: [{ limit, identity: 'u', cost: 1 }] }]);
  const [key] = await redis.keys('p:*');
  const logged = ((await bytesOf(key)) / LOGGED).toFixed(1);
  await redis.quit();
  return { rows, logged };
}
