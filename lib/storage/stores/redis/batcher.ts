import { RateLimitStoreError } from '../../../engine/errors/errors.js';
import { messages } from '../../../engine/errors/messages/general.js';
import { SharedDeadline, storeTimeout, TimedCall } from '../../redis/deadline.js';
import { batches, Gathering, partPlain } from './batches.js';
import type { Job } from './jobs.js';
import type { Program } from './program.js';
import { Reply } from './reply.js';
import type { ScriptCalls } from './script-calls.js';
import { groupBy, type Slots } from './slots.js';

/**
 * Load counts as sustained after this many turns with at least this many jobs, each within milliseconds of the last one. If no call is in
 * flight then, half of the jobs wait for the next turn: otherwise server and client would take turns waiting for each other.
 */
const SUSTAINED = { turns: 4, jobs: 4, withinMs: 10 };
/** How many times to send a check whose calendar window didn't match the server's. */
const MAX_TRIES = 3;

/** Determines how many replicas have the writes of a call. */
export interface Confirmation {
  /** Waits for `wanted` replicas, and returns how many have the writes. */
  confirm(program: Program, wanted: number): Promise<number>;
  /** The error if too few replicas have the writes. */
  unconfirmed(confirmed: number, wanted: number): RateLimitStoreError;
}

/** Sends all jobs of one turn of the event loop in as few calls as possible. */
export class Batcher {
  private queue: Job[] = [];
  private readonly inFlight = new Set<Call>();
  private readonly deadline: SharedDeadline;
  /** True if the last turn had only one job. The next job is sent immediately then. */
  private isCalm = false;
  /** True if a job was sent immediately since jobs were last sent together. */
  private sentAtOnce = false;
  /** The number of consecutive turns with many jobs, and when the first job of the last turn came. */
  private turns = 0;
  private lastSince = 0;
  /** When the first job of the queue came. */
  private since = 0;
  private readonly whenIdle: (() => void)[] = [];
  private readonly gathering: Gathering;

  constructor(
    private readonly calls: ScriptCalls,
    /** The slots of a Cluster. A call can reach only one of them. */
    private readonly slots: Slots | undefined,
    /** Set if replicas confirm writes. A turn then waits for the calls of the previous one. */
    private readonly confirmation?: Confirmation,
    /** The maximum time that jobs wait for others under high load, in milliseconds. */
    gatherMs = 0,
  ) {
    const longestMs = Math.min(gatherMs, calls.timeoutMs / 2);
    this.gathering = new Gathering(longestMs);
    // A check that has waited for others has the rest of its time for its call.
    this.deadline = new SharedDeadline(calls.timeoutMs - longestMs, calls.sendsNextTurn);
  }

  /** Sends a job together with all others of this turn of the event loop; immediately if there are few. */
  enqueue(job: Job): void {
    if (this.queue.length === 0) {
      this.since = job.since = performance.now();
      const waitMs = this.gathering.waitMs(this.since);
      if (waitMs > 0) setTimeout(this.flush, waitMs);
      else if (this.isCalm && this.inFlight.size === 0) {
        this.sentAtOnce = true;
        this.gathering.sent(1);
        this.send([job]);
        return;
      } else setImmediate(this.flush);
    } else {
      job.since = this.since;
    }
    this.queue.push(job);
  }

  /** Resolves when all jobs are answered. */
  async drain(): Promise<void> {
    // A reply may cause jobs to be sent again.
    while (this.queue.length > 0 || this.inFlight.size > 0) {
      if (this.queue.length > 0 && !this.isHeld) this.flush();
      else await new Promise<void>((resolve) => this.whenIdle.push(resolve));
    }
  }

  /** The reason why a job has no answer yet: the server, replicas, or its turn behind jobs that wait for replicas. */
  awaited(job: Job): 'server' | 'replicas' | 'turn' {
    const calls = [...this.inFlight];
    const own = calls.find(({ jobs }) => jobs.includes(job));
    if (own !== undefined) return own.isDone ? 'replicas' : 'server';
    return calls.some(({ isDone }) => isDone) ? 'turn' : 'server';
  }

  /** True if jobs wait for the calls in flight. */
  private get isHeld(): boolean {
    return this.confirmation !== undefined && this.inFlight.size > 0;
  }

  private readonly flush = (): void => {
    if (this.isHeld) return;
    let jobs = this.next();
    // A job that has waited too long is not charged, since its caller has already got an error.
    if (this.confirmation !== undefined) jobs = jobs.filter((job) => !job.isOver);
    const { slots } = this;
    if (slots === undefined) {
      const isSplit = this.queue.length > 0;
      this.sendAll(jobs);
      // Scheduled after the sends, so that a client that writes in its next turn writes these before it gets the others.
      if (isSplit) setImmediate(this.flush);
      return;
    }
    const groups = groupBy(jobs, ({ counter }) => slots.of(counter));
    this.calls.inOneWrite(() => {
      for (const group of groups) this.sendAll(group);
    });
  };

  /** The jobs to send now. The others wait for the next turn. */
  private next(): Job[] {
    const { queue } = this;
    const goesOn = queue.length >= SUSTAINED.jobs && this.since - this.lastSince < SUSTAINED.withinMs;
    this.turns = goesOn ? this.turns + 1 : 0;
    this.lastSince = this.since;
    this.isCalm = queue.length === 1 && !this.sentAtOnce;
    this.sentAtOnce = false;
    const splits = this.turns > SUSTAINED.turns && queue.length >= 2 * SUSTAINED.jobs && this.inFlight.size === 0;
    this.queue = splits && this.slots === undefined ? queue.splice(Math.ceil(queue.length / 2)) : [];
    this.gathering.sent(queue.length);
    return queue;
  }

  private sendAll(jobs: Job[]): void {
    for (const part of partPlain(jobs)) for (const batch of batches(part)) this.send(batch);
  }

  private send(jobs: Job[]): void {
    // Determined before the call, since a failure may make the client forget which node had the slot.
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

  /** Passes the replies on to their jobs. */
  settle(call: Call, raw: unknown): void {
    const { jobs } = call;
    const undone: Job[] = [];
    let reply: Reply;
    try {
      reply = new Reply(raw);
      const { order } = call;
      // The whole reply must be valid before any of it is passed on.
      for (let i = 0; i < jobs.length; i++) {
        const job = jobs[order === undefined ? i : order[i]!]!;
        if (!job.read(reply)) undone.push(job);
      }
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

  /** Waits for replicas to confirm the writes of a call. Returns the jobs that wait for them. */
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

  /** Fails a call that got no reply or an invalid one. */
  fail(call: Call, error: unknown): void {
    const { jobs, node } = call;
    this.end(call);
    let failure = this.calls.failure(error, node);
    if (node !== undefined && this.slots !== undefined) failure = this.slots.blame(node, failure, jobs[0]!.counter);
    for (const job of jobs) job.reject(failure);
  }

  timeOut(call: Call): void {
    this.calls.noteSilence();
    this.fail(call, storeTimeout(this.calls.timeoutMs));
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
    const error = storeTimeout(timeoutMs);
    setTimeout(() => job.reject(error), job.since + timeoutMs - performance.now()).unref();
  }
}

const NO_JOBS: readonly Job[] = [];

/** The jobs that are in flight in one call. */
class Call extends TimedCall {
  /** True once it has its reply. It stays in flight while replicas confirm its writes. */
  isDone = false;
  /** The index of each reply's job; `undefined` if the replies are in the order of the jobs. */
  order: readonly number[] | undefined;
  /** The program, if replicas confirm its writes. */
  program: Program | undefined;

  constructor(
    readonly jobs: readonly Job[],
    /** The node of the call, if there are several. */
    readonly node: string | undefined,
    private readonly batcher: Batcher,
  ) {
    super();
  }

  /** A reply that comes too late is ignored. */
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
