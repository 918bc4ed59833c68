/** How cost grows with keys, with the size of a sliding log, and with the limits of a check. */
import { Redis } from 'ioredis';
import { ours } from '../contenders/ours.mjs';
import { compare } from '../measure.mjs';

const wide = { rate: 1_000_000_000, intervalMs: 60_000 };

async function usedBytes(url) {
  const redis = new Redis(url);
  const info = await redis.info('memory');
  await redis.quit();
  return Number(/used_memory:(\d+)/.exec(info)[1]);
}

/** @returns series of points { x, perSecond, megabytes? } */
export async function growth({ url, ms, quick }) {
  const one = async (options) => {
    const [{ perSecond }] = await compare([{ ...ours, unlimited: true }], {
      url,
      rounds: 1,
      ms,
      inFlight: 256,
      keys: 10_000,
      limits: [wide],
      ...options,
    });
    return perSecond;
  };
  const series = { keys: [], log: [], limits: [] };
  for (const keys of quick ? [1000, 100_000] : [1000, 10_000, 100_000, 1_000_000]) {
    const enough = keys / 100;
    const perSecond = await one({ keys, ms: Math.max(ms, enough) });
    series.keys.push({ x: keys, perSecond, megabytes: (await usedBytes(url)) / 1e6 });
  }
  for (const rate of quick ? [10, 10_000] : [10, 100, 1000, 10_000, 100_000, 1_000_000]) {
    const limits = [{ algo: 'sliding-log', rate, intervalMs: 3_600_000 }];
    const keys = Math.max(1, Math.min(10_000, Math.floor(1_000_000 / rate)));
    series.log.push({ x: rate, perSecond: await one({ keys, limits }), megabytes: (await usedBytes(url)) / 1e6 });
  }
  for (const count of quick ? [1, 3] : [1, 2, 3, 5, 10]) {
    const limits = Array.from({ length: count }, (_, i) => ({ ...wide, intervalMs: wide.intervalMs * (i + 1) }));
    series.limits.push({ x: count, perSecond: await one({ limits }) });
  }
  return series;
}
