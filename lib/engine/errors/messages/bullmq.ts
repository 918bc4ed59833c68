import { counted, show } from '../wording.js';

/** The messages of jobs of BullMQ. */
export const bullmqMessages = {
  noLimiters: (got: unknown) =>
    `rateLimited: option 'limiter' is ${show(got)}, wants a Limiter such as limiters.for('api'), or a list of these`,
  limitersOfTwoApps: (one: string, other: string) =>
    `rateLimited: option 'limiter' holds '${one}' and '${other}' of two apps, wants those of one LimiterService`,
  noProcessor: (got: unknown) => `rateLimited: got ${show(got)}, wants the function that processes jobs`,
  noProcess: (location: string) =>
    `${location}: the class has no method 'process', wants one such as that of a WorkerHost`,
  noService: (location: string) =>
    `${location}: LimiterService was not injected, wants a processor that Nest makes of its class`,
  notLimited: (got: unknown) => `jobLimitsOf: got ${show(got)}, wants a processor whose class has @JobRateLimit`,
  noId: (location: string) => `${location}: the job has no id, wants one that a queue has`,
  noJob: (location: string, got: unknown) => `${location}: giveBack got ${show(got)}, wants a job of a queue`,
  noEvents: (location: string, got: unknown) =>
    `${location}: follow got ${show(got)}, wants a QueueEvents of BullMQ such as new QueueEvents('sync', { connection })`,
  noToken: (location: string) => `${location}: the job came without the token of its lock, wants it behind the job`,
  delayed: (ms: number) => `the job waits for its limits: it was delayed by ${ms} ms`,
  neverFits: (location: string, limit: string, cost: number, quota: number) =>
    `${location}: limit '${limit}' never lets this job start: it asks for ${counted(cost, 'unit')} of at most ${quota}, or is refused for good`,
  storeDenies: (location: string, queue: string, delayMs: number) =>
    `${location}: the store fails, and a limit refuses meanwhile: jobs of ${queue} are delayed by ${delayMs} ms, and ask again`,
} as const;
