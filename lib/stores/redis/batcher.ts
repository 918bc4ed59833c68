import { RateLimitStoreError } from '../../errors/errors.js';
import { messages } from '../../errors/messages.js';
import type { CompiledLimit } from '../../limits/compiled-limit.js';
import type { Counter } from '../../limits/counter.js';
import { asStoreError } from '../../redis/store-error.js';
import { batches } from './batches.js';
import type { ScriptCalls } from './script-calls.js';
import type { Program } from './program.js';
import { Reply } from './reply.js';
import { groupBy, type Slots } from './slots.js';

/** What is on its way to Redis. */
interface Job {
  /** One of its counters; they all lie in one slot. */
  readonly counter: Counter;
  readonly write: (program: Program) => void;
  /** Reads its part of the reply; nothing if it was not done and is to be asked again. */
  readonly read: (reply: Reply) => unknown;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: RateLimitStoreError) => void;
  /** The keys that it needs, at most. */
  readonly keys: number;
  /** How much it asks of the server, in checks of a plain counter. */
  readonly work: number;
  /** When it was asked, on the process's monotonic clock. */
  readonly since: number;
  tries: number;
}

/**
 * Load is sustained after so many turns with so many jobs or more, each within milliseconds of the last one. Then, if no call is
 * in flight, half of the jobs wait for the next turn: or server and client would take turns, and each wait for the other.
 */
const SUSTAINED = { turns: 4, jobs: 4, withinMs: 10 };
/** How often a check is asked again whose calendar window was not the server's. */
const MAX_TRIES = 3;

/** Sends all that is asked in one turn of the event loop in as few calls as can be. */
export class Batcher {
  private queue: Job[] = [];
  private readonly sending = new Set<Promise<void>>();
  /** How many turns with many jobs there were in a row, and when the first job of the last turn was asked. */
  private turns = 0;
  private lastSince = 0;
  /** When the first of the queue was asked. */
  private since = 0;

  constructor(
    private readonly calls: ScriptCalls,
    /** The slots of a Cluster: a call reaches one of them only. */
    private readonly slots: Slots | undefined,
  ) {}

  /** Sends what is written with all else of this turn of the event loop. */
  enqueue<T>(
    counter: Counter,
    write: (program: Program) => void,
    read: (reply: Reply) => T | undefined,
    keys = keysOf(counter.limit),
    work = workOf(counter.limit),
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.queue.length === 0) {
        this.since = performance.now();
        setImmediate(() => this.flush());
      }
      const settle = resolve as Job['resolve'];
      this.queue.push({ counter, write, read, resolve: settle, reject, keys, work, since: this.since, tries: 0 });
    });
  }

  /** Resolves when everything is answered. */
  async drain(): Promise<void> {
    while (this.queue.length > 0) this.flush();
    await Promise.all(this.sending);
  }

  /** The jobs to send now; the others are left for the next turn. */
  private next(): Job[] {
    const { queue } = this;
    const goesOn = queue.length >= SUSTAINED.jobs && this.since - this.lastSince < SUSTAINED.withinMs;
    this.turns = goesOn ? this.turns + 1 : 0;
    this.lastSince = this.since;
    const splits = this.turns > SUSTAINED.turns && queue.length >= 2 * SUSTAINED.jobs && this.sending.size === 0;
    this.queue = splits && this.slots === undefined ? queue.splice(Math.ceil(queue.length / 2)) : [];
    return queue;
  }

  private flush(): void {
    const jobs = this.next();
    if (this.queue.length > 0) setImmediate(() => this.flush());
    const { slots } = this;
    const groups = slots === undefined ? [jobs] : groupBy(jobs, ({ counter }) => slots.of(counter));
    for (const group of groups) {
      for (const batch of batches(group)) {
        const sent: Promise<void> = this.send(batch).finally(() => this.sending.delete(sent));
        this.sending.add(sent);
      }
    }
  }

  private async send(jobs: Job[]): Promise<void> {
    // Before the call, since its failure may make the client forget which node had the slot.
    const node = this.slots?.nodeOf(jobs[0]!.counter);
    try {
      const program = this.calls.program();
      for (const { write } of jobs) write(program);
      const reply = new Reply(await this.calls.run(program), program.order);
      // A reply has to make sense to its end before any of it is told.
      const answers = jobs.map((job) => job.read(reply));
      reply.end();
      for (const [index, job] of jobs.entries()) {
        if (answers[index] !== undefined) job.resolve(answers[index]);
        else if (++job.tries < MAX_TRIES) this.retry(job);
        else job.reject(new RateLimitStoreError(messages.clockUnsettled()));
      }
      if (reply.serverTime === undefined) return;
      this.calls.setClock(reply.serverTime);
      this.flush();
    } catch (error) {
      const failure = asStoreError(error);
      if (node !== undefined) this.slots?.blame(node, failure);
      for (const { reject } of jobs) reject(failure);
    }
  }

  private retry(job: Job): void {
    this.queue.push(job);
    const { timeoutMs } = this.calls;
    const error = new RateLimitStoreError(messages.storeTimeout(timeoutMs));
    setTimeout(() => job.reject(error), job.since + timeoutMs - performance.now()).unref();
  }
}

/** The most keys that a limit needs. */
export function keysOf({ algorithm }: CompiledLimit): number {
  return 1 + (algorithm.extraKeys?.length ?? 0);
}

/** How much a limit asks of the server, in checks of a plain counter. */
export function workOf({ algorithm, parameters }: CompiledLimit): number {
  return algorithm.work?.(parameters) ?? 1;
}
