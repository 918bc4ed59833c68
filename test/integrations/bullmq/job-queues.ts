import { freshPrefix } from '../../support/limits/stores.js';

/** The version that is tried in full. */
export const NEWEST = 'BullMQ 6';

/** Both versions that are supported. The types of one stand for both. */
export const versions: Record<string, () => Promise<Bullmq>> = {
  [NEWEST]: () => import('bullmq'),
  'BullMQ 5': () => import('bullmq5') as unknown as Promise<Bullmq>,
};

export type Bullmq = typeof import('bullmq');
type Job = import('bullmq').Job;
type Processor = (job: Job, token?: string, signal?: AbortSignal) => Promise<unknown>;

const url = new URL(process.env['TEST_REDIS_URL'] ?? 'redis://127.0.0.1');

export const connection = { host: url.hostname, port: Number(url.port) };

/** A queue of a test, with all that belongs to it. */
export class JobQueue {
  readonly name = 'sync';
  readonly prefix = freshPrefix();
  readonly queue: import('bullmq').Queue;
  private readonly closers: (() => Promise<void>)[] = [];

  constructor(private readonly bullmq: Bullmq) {
    this.queue = new bullmq.Queue(this.name, { connection, prefix: this.prefix });
    this.closers.push(
      () => this.queue.obliterate({ force: true }),
      () => this.queue.close(),
    );
  }

  work(processor: Processor, options: Partial<import('bullmq').WorkerOptions> = {}): import('bullmq').Worker {
    const worker = new this.bullmq.Worker(this.name, processor, { connection, prefix: this.prefix, ...options });
    // What a test does to jobs on purpose is reported here.
    worker.on('error', () => undefined);
    this.closers.unshift(() => worker.close(true));
    return worker;
  }

  async events(): Promise<import('bullmq').QueueEvents> {
    const events = new this.bullmq.QueueEvents(this.name, { connection, prefix: this.prefix });
    this.closers.unshift(() => events.close());
    await events.waitUntilReady();
    return events;
  }

  async add(...shops: string[]): Promise<Job[]> {
    return this.queue.addBulk(shops.map((shop) => ({ name: 'sync', data: { shop } })));
  }

  /** The job as it is now. */
  async again({ id }: Job): Promise<Job> {
    return (await this.queue.getJob(id!)) as Job;
  }

  async counts(...states: ('completed' | 'failed' | 'delayed' | 'waiting' | 'active')[]): Promise<number> {
    return this.queue.getJobCountByTypes(...states);
  }

  async close(): Promise<void> {
    for (const close of this.closers) await close();
  }
}
