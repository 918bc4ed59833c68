import { RateLimitStoreError } from '../../errors/errors.js';
import { messages } from '../../errors/messages/general.js';
import { SharedDeadline, TimedCall } from '../../redis/shared-deadline.js';
import { partAlike } from './alike-jobs.js';
import { batches } from './batches.js';
import type { Job } from './jobs.js';
import type { Program } from './program.js';
import { Reply } from './reply.js';
import type { ScriptCalls } from './script-calls.js';
import { groupBy, type Slots } from './slots.js';

/**
 * Load is sustained after so many turns with so many jobs or more, each within milliseconds of the last one. Then, if no call is
 * in flight, half of the jobs wait for the next turn: or server and client would take turns, and each wait for the other.
 */
const SUSTAINED = { turns: 4, jobs: 4, withinMs: 10 };
/** How often a check is asked again whose calendar window was not the server's. */
const MAX_TRIES = 3;

/** Asks which replicas have what a call wrote. */
export interface Confirmation {
  /** How many of those who are wanted have it. */
  confirm(program: Program, wanted: number): Promise<number>;
  /** The failure of what too few have. */
  unconfirmed(confirmed: number, wanted: number): RateLimitStoreError;
}

/** Sends all that is asked in one turn of the event loop in as few calls as can be. */
export class Batcher {
  private queue: Job[] = [];
  private readonly inFlight = new Set<Call>();
  private readonly deadline: SharedDeadline;
  /** Whether the last turn asked for one job only: then the next one is sent at once. */
  private isCalm = false;
  /** Whether one was sent at once since jobs were last sent together. */
  private sentAtOnce = false;
  /** How many turns with many jobs there were in a row, and when the first job of the last turn was asked. */
  private turns = 0;
  private lastSince = 0;
  /** When the first of the queue was asked. */
  private since = 0;
  private readonly whenIdle: (() => void)[] = [];

  constructor(
    private readonly calls: ScriptCalls,
    /** The slots of a Cluster: a call reaches one of them only. */
    private readonly slots: Slots | undefined,
    /** Where replicas confirm what is written: then a turn waits for the calls of the one before. */
    private readonly confirmation?: Confirmation,
  ) {
    this.deadline = new SharedDeadline(calls.timeoutMs);
  }

  /** Sends a job with all else of this turn of the event loop; alone and at once, if few are asked for. */
  enqueue(job: Job): void {
    if (this.queue.length === 0) {
      this.since = job.since = performance.now();
      if (this.isCalm && this.inFlight.size === 0) {
        this.sentAtOnce = true;
        this.send([job]);
        return;
      }
      setImmediate(this.flush);
    } else {
      job.since = this.since;
    }
    this.queue.push(job);
  }

  /** Resolves when everything is answered. */
  async drain(): Promise<void> {
    // An answer may have jobs asked again.
    while (this.queue.length > 0 || this.inFlight.size > 0) {
      if (this.queue.length > 0 && !this.isHeld) this.flush();
      else await new Promise<void>((resolve) => this.whenIdle.push(resolve));
    }
  }

  /** Whether what is asked waits for the calls that are in flight. */
  private get isHeld(): boolean {
    return this.confirmation !== undefined && this.inFlight.size > 0;
  }

  private readonly flush = (): void => {
    if (this.isHeld) return;
    let jobs = this.next();
    // What waited for too long is not charged: its caller was told that it failed.
    if (this.confirmation !== undefined) jobs = jobs.filter((job) => !job.isOver);
    if (this.queue.length > 0) setImmediate(this.flush);
    const { slots } = this;
    if (slots === undefined) {
      this.sendAll(jobs);
      return;
    }
    const groups = groupBy(jobs, ({ counter }) => slots.of(counter));
    this.calls.inOneWrite(() => {
      for (const group of groups) this.sendAll(group);
    });
  };

  /** The jobs to send now; the others are left for the next turn. */
  private next(): Job[] {
    const { queue } = this;
    const goesOn = queue.length >= SUSTAINED.jobs && this.since - this.lastSince < SUSTAINED.withinMs;
    this.turns = goesOn ? this.turns + 1 : 0;
    this.lastSince = this.since;
    this.isCalm = queue.length === 1 && !this.sentAtOnce;
    this.sentAtOnce = false;
    const splits = this.turns > SUSTAINED.turns && queue.length >= 2 * SUSTAINED.jobs && this.inFlight.size === 0;
    this.queue = splits && this.slots === undefined ? queue.splice(Math.ceil(queue.length / 2)) : [];
    return queue;
  }

  private sendAll(jobs: Job[]): void {
    for (const part of partAlike(jobs)) for (const batch of batches(part)) this.send(batch);
  }

  private send(jobs: Job[]): void {
    // Before the call, since its failure may make the client forget which node had the slot.
    const node = this.slots?.nodeOf(jobs[0]!.counter);
    const call = new Call(jobs, node, this);
    this.inFlight.add(call);
    try {
      const program = this.calls.program();
      for (const job of jobs) job.write(program);
      call.order = program.order;
      if (this.confirmation !== undefined) call.program = program;
      this.calls.run(program, node).then(call.replied, call.failed);
      this.deadline.begin(call);
    } catch (error) {
      this.fail(call, error);
    }
  }

  /** Hands the answers on. */
  settle(call: Call, raw: unknown): void {
    const { jobs } = call;
    const undone: Job[] = [];
    let reply: Reply;
    try {
      reply = new Reply(raw, call.order);
      // A reply has to make sense to its end before any of it is told.
      for (const job of jobs) if (!job.read(reply)) undone.push(job);
      reply.end();
    } catch (error) {
      this.fail(call, error);
      return;
    }
    const asked = this.confirmation === undefined ? NO_JOBS : this.confirm(call, undone, this.confirmation);
    if (asked.length === 0) this.end(call);
    for (const job of jobs) {
      if ((undone.length === 0 || !undone.includes(job)) && !asked.includes(job)) job.settle();
    }
    if (reply.serverTime === undefined) return;
    this.calls.setClock(reply.serverTime);
    for (const job of undone) this.retry(job);
    this.flush();
  }

  /** Has replicas confirm what a call changed. Returns the jobs that wait for them. */
  private confirm(call: Call, undone: readonly Job[], by: Confirmation): readonly Job[] {
    const asked = call.jobs.filter((job) => job.replicas > 0 && !undone.includes(job) && job.isWritten);
    if (asked.length === 0) return asked;
    this.deadline.end(call);
    call.isDone = true;
    void this.settleConfirmed(call, asked, by);
    return asked;
  }

  private async settleConfirmed(call: Call, jobs: readonly Job[], by: Confirmation): Promise<void> {
    try {
      const confirmed = await by.confirm(call.program!, Math.max(...jobs.map(({ replicas }) => replicas)));
      for (const job of jobs) {
        if (job.replicas <= confirmed) job.settle();
        else job.reject(by.unconfirmed(confirmed, job.replicas));
      }
    } catch (error) {
      for (const job of jobs) job.reject(error as RateLimitStoreError);
    } finally {
      this.end(call);
    }
  }

  /** The call was not answered, or not as the script does. */
  fail(call: Call, error: unknown): void {
    const { jobs, node } = call;
    this.end(call);
    let failure = this.calls.failure(error, node);
    if (node !== undefined && this.slots !== undefined) failure = this.slots.blame(node, failure, jobs[0]!.counter);
    for (const job of jobs) job.reject(failure);
  }

  timeOut(call: Call): void {
    this.calls.noteSilence();
    this.fail(call, new RateLimitStoreError(messages.storeTimeout(this.calls.timeoutMs)));
  }

  private end(call: Call): void {
    this.deadline.end(call);
    call.isDone = true;
    this.inFlight.delete(call);
    if (this.inFlight.size > 0) return;
    for (const resolve of this.whenIdle.splice(0)) resolve();
    if (this.confirmation !== undefined && this.queue.length > 0) setImmediate(this.flush);
  }

  private retry(job: Job): void {
    if (++job.tries === MAX_TRIES) {
      job.reject(new RateLimitStoreError(messages.clockUnsettled()));
      return;
    }
    this.queue.push(job);
    const { timeoutMs } = this.calls;
    const error = new RateLimitStoreError(messages.storeTimeout(timeoutMs));
    setTimeout(() => job.reject(error), job.since + timeoutMs - performance.now()).unref();
  }
}

const NO_JOBS: readonly Job[] = [];

/** Jobs that are on their way in one call. */
class Call extends TimedCall {
  isDone = false;
  /** The place of each job's reply among the replies, if it is another than that of the job. */
  order: readonly number[] | undefined;
  /** What it asks, where replicas confirm it. */
  program: Program | undefined;

  constructor(
    readonly jobs: readonly Job[],
    /** The node that was asked, where there are several. */
    readonly node: string | undefined,
    private readonly batcher: Batcher,
  ) {
    super();
  }

  /** An answer that comes too late says nothing. */
  readonly replied = (reply: unknown): void => {
    if (!this.isDone) this.batcher.settle(this, reply);
  };

  readonly failed = (error: unknown): void => {
    if (!this.isDone) this.batcher.fail(this, error);
  };

  expire(): void {
    this.batcher.timeOut(this);
  }
}
