/** Bytes on Redis: of a key that is 20 bytes long, and of each request that a sliding log remembers. */
import { Redis } from 'ioredis';
import { startApp } from '../contenders/ours.mjs';
import { table } from '../report/format.mjs';

const KEY_BYTES = 20;
const LOGGED = 10_000;
const NAME = 'n'.repeat(10);

const ALGORITHMS = [
  { algo: 'gcra', rate: 100, interval: '1m' },
  { algo: 'token-bucket', rate: 100, interval: '1m' },
  { algo: 'leaky-bucket', rate: 100, interval: '1m' },
  { algo: 'fixed-window', rate: 100, interval: '1m' },
  { algo: 'calendar-window', rate: 100, period: 'day' },
  { algo: 'sliding-window', rate: 100, interval: '1m' },
];

async function measure({ url }) {
  const redis = new Redis(url);
  await redis.flushall();
  const { limiters, close } = await startApp({ redis: url, prefix: 'p' });
  const counterKey = async () => {
    const [key] = await redis.keys('p:*u*');
    return key;
  };
  const bytesOf = (key) => redis.memory('USAGE', key, 'SAMPLES', 0);
  const rows = [];
  for (const options of ALGORITHMS) {
    const limiter = limiters.for({ ...options, name: NAME });
    for (let i = 0; i < 20; i++) await limiter.consume('u');
    const key = await counterKey();
    if (key.length !== KEY_BYTES)
      throw new Error(`the key ${key}: expected ${KEY_BYTES}, received ${key.length} bytes long`);
    rows.push({ name: options.algo, bytes: await bytesOf(key) });
    await redis.del(key);
  }
  const log = limiters.for({ algo: 'sliding-log', rate: 1_000_000, interval: '1h', name: NAME });
  for (let i = 0; i < LOGGED; i++) await log.consume('u');
  const logged = ((await bytesOf(await counterKey())) / LOGGED).toFixed(1);
  await close();
  await redis.quit();
  return { rows, logged };
}

function section({ rows, logged }, { goalsOf }) {
  const bytes = [...rows.map(({ name, bytes: each }) => [name, each]), ['sliding-log', `${logged} a request`]];
  return ['## Memory on Redis', table(['algorithm', 'bytes of a key of 20 bytes'], bytes), ...goalsOf('memory')];
}

export const memory = { name: 'memory', measure, section };
