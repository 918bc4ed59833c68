/** What keeps calls below an upstream's limit. Each is told the limit, and gives a function that makes one call. */
import { setTimeout as sleep } from 'node:timers/promises';
import { fetchOnce } from './fetch-once.mjs';

/** Calls that are refused are sent again after what the upstream says. */
async function withRetries(send) {
  for (;;) {
    const response = await send();
    await response.arrayBuffer();
    if (response.status !== 429) return;
    await sleep(1000 * Number(response.headers.get('retry-after') ?? 1) * (1 + Math.random() / 10));
  }
}

/** Calls of an app of ours, within what `limit` says. */
async function sluice({ quota, windowMs, redisUrl, prefix, packagePath }, limit) {
  const { NestFactory } = await import('@nestjs/core');
  const { LimiterService, RateLimitModule } = await import(packagePath);
  const { OutboundLimiter } = await import(new URL('outbound/index.js', packagePath).href);
  class AppModule {}
  const module = {
    module: AppModule,
    imports: [
      RateLimitModule.forRoot({
        redis: redisUrl,
        prefix,
        timeout: 5000,
        define: { upstream: { algo: 'fixed-window', rate: quota, interval: windowMs } },
      }),
    ],
  };
  const app = await NestFactory.createApplicationContext(module, { logger: ['error'] });
  const limiters = app.get(LimiterService);
  let fallback = 0;
  limiters.decisions$.subscribe(({ source }) => (fallback += source === 'fallback' ? 1 : 0));
  const call = app.get(OutboundLimiter).fetch(limit, { learn: true, retry: { attempts: 20 } });
  return {
    send: async (url, headers) => void (await (await call(url, { headers })).arrayBuffer()),
    close: () => app.close(),
    fallback: () => fallback,
  };
}

export const contenders = {
  'nestjs-sluice': (terms) => sluice(terms, 'upstream'),

  // It is told no limit.
  'nestjs-sluice, learned': (terms) => sluice(terms, { algo: 'learned', name: 'partner' }),

  async 'Bottleneck on Redis'({ quota, windowMs, redisUrl, prefix }) {
    const { default: Bottleneck } = await import('bottleneck');
    const { hostname: host, port } = new URL(redisUrl);
    const limiter = new Bottleneck({
      id: prefix,
      datastore: 'ioredis',
      clearDatastore: false,
      clientOptions: { host, port: Number(port) },
      reservoir: quota,
      reservoirRefreshAmount: quota,
      reservoirRefreshInterval: windowMs,
    });
    await limiter.ready();
    return {
      send: (url, headers) => withRetries(() => limiter.schedule(() => fetchOnce(url, headers))),
      close: () => limiter.disconnect(),
    };
  },

  async 'p-queue and retries'({ quota, windowMs, processes }) {
    const { default: PQueue } = await import('p-queue');
    const queue = new PQueue({ intervalCap: Math.floor(quota / processes), interval: windowMs });
    return {
      send: (url, headers) => withRetries(() => queue.add(() => fetchOnce(url, headers))),
      close: () => undefined,
    };
  },

  async 'a fixed rate for each process'({ quota, windowMs, processes }) {
    const spacing = (windowMs * processes) / quota;
    let next = performance.now();
    const turn = async () => {
      next = Math.max(next + spacing, performance.now());
      await sleep(next - performance.now());
    };
    return {
      send: (url, headers) =>
        withRetries(async () => {
          await turn();
          return fetchOnce(url, headers);
        }),
      close: () => undefined,
    };
  },
};
