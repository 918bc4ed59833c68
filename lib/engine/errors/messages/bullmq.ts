import { counted, wrongInput } from '../wording.js';

/** The messages of BullMQ jobs. */
export const bullmqMessages = {
  noLimiters: (received: unknown) =>
    wrongInput('rateLimited.limiter', "a Limiter such as limiters.for('api'), or a list of these", received),
  limitersOfTwoApps: (one: string, other: string) =>
    `rateLimited.limiter: '${one}' and '${other}' belong to two apps. Use limiters of one LimiterService`,
  noProcessor: (received: unknown) => wrongInput('rateLimited', 'the function that processes jobs', received),
  noProcess: (location: string) =>
    `${location}: the class has no method 'process'. Use it on a processor such as a WorkerHost`,
  noService: (location: string) =>
    `${location}: LimiterService was not injected. Let Nest create the processor from its class`,
  notLimited: (received: unknown) => wrongInput('jobLimitsOf', 'a processor whose class has @JobRateLimit', received),
  noId: (location: string) => `${location}: the job has no id. Use a job that comes from a queue`,
  noJob: (location: string, received: unknown) => wrongInput(`${location}.giveBack`, 'a job of a queue', received),
  noEvents: (location: string, received: unknown) =>
    wrongInput(
      `${location}.follow`,
      "a QueueEvents of BullMQ such as new QueueEvents('sync', { connection })",
      received,
    ),
  noToken: (location: string) =>
    `${location}: the job came without the token of its lock. Pass the token as the second argument`,
  delayed: (ms: number) => `the job waits for its limits: it was delayed by ${ms} ms`,
  neverFits: (location: string, limit: string, cost: number, quota: number) =>
    `${location}: limit '${limit}' never lets this job start: it costs ${counted(cost, 'unit')} of at most ${quota}, or is denied permanently`,
  storeDenies: (location: string, queue: string, delayMs: number) =>
    `${location}: the store failed, and a limit rejects jobs until it recovers: jobs of ${queue} are delayed by ${delayMs} ms, then checked again`,
} as const;
