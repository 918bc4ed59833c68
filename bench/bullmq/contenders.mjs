/** What keeps the jobs of each tenant below its rate. Each is told the limit and what a job does, and gives a processor. */
import { fileURLToPath, pathToFileURL } from 'node:url';
import { DelayedError, RateLimitError } from 'bullmq';

const dist = (file) => pathToFileURL(fileURLToPath(new URL(`../../dist/${file}`, import.meta.url))).href;
const keyOf = (job) => `tenant:${job.data.tenant}`;

/** An app with the limit of the tenants. */
async function openLimiters({ redisUrl, limit }) {
  const { NestFactory } = await import('@nestjs/core');
  const { LimiterService, RateLimitModule } = await import(dist('index.js'));
  class AppModule {}
  const options = { redis: redisUrl, timeout: 5000, define: { tenant: limit } };
  const module = { module: AppModule, imports: [RateLimitModule.forRoot(options)] };
  const app = await NestFactory.createApplicationContext(module, { logger: ['error'] });
  return { limiters: app.get(LimiterService), close: () => app.close() };
}

async function makeSluice(terms) {
  const { rateLimited } = await import(dist('bullmq/index.js'));
  const { limiters, close } = await openLimiters(terms);
  return { processor: rateLimited(terms.work, { limiter: limiters.for('tenant'), key: keyOf }), close };
}

export const contenders = {
  'nestjs-sluice': { make: makeSluice },

  'nestjs-sluice, jobs with a priority': { jobOptions: { priority: 1 }, make: makeSluice },

  /** The queue's own limit: it knows no tenants, so it is given what all of them may do together. */
  'BullMQ: limiter': {
    make: ({ work, tenants, limit }) => ({
      processor: work,
      workerOptions: { limiter: { max: tenants * limit.rate, duration: limit.interval } },
      close: () => undefined,
    }),
  },

  /** Stops the queue until the tenant of the job that it met may go on. */
  'BullMQ: worker.rateLimit()': {
    make: async (terms) => {
      const { limiters, close } = await openLimiters(terms);
      const tenant = limiters.for('tenant');
      const processor = async (job) => {
        const { allowed, retryAfterMs } = await tenant.consume(keyOf(job));
        if (allowed) return terms.work(job);
        await terms.worker().rateLimit(retryAfterMs);
        throw new RateLimitError();
      };
      return { processor, close };
    },
  },

  /** Looks again and again: a job that is refused comes back when one unit will be there, together with all others. */
  'moveToDelayed by retryAfterMs': {
    make: async (terms) => {
      const { limiters, close } = await openLimiters(terms);
      const tenant = limiters.for('tenant');
      const processor = async (job, token) => {
        const { allowed, retryAfterMs } = await tenant.consume(keyOf(job));
        if (allowed) return terms.work(job);
        await job.moveToDelayed(Date.now() + retryAfterMs, token);
        throw new DelayedError();
      };
      return { processor, close };
    },
  },
};
