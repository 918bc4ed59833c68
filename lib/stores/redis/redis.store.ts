import calculateSlot from 'cluster-key-slot';
import type { Cluster } from 'ioredis';
import type { WindowCount } from '../../algorithms/algorithm.js';
import { algorithms } from '../../algorithms/index.js';
import type { CompiledLimit } from '../../limits/compiled-limit.js';
import { RateLimitArgumentError, RateLimitStoreError } from '../../errors/errors.js';
import { messages } from '../../errors/messages.js';
import { connect, CONNECT_TIMEOUT_MS, isCluster, type RedisClient } from '../../redis/client.js';
import { withDeadline } from '../../redis/deadline.js';
import { extraKeysOf, keyOf } from './keys.js';
import { Program, Reply, type TestClock } from './program.js';
import { asStoreError } from '../../redis/store-error.js';
import { Script } from '../../redis/script.js';
import type { Charge, Check, HeldLease, Refund, ReserveEntry, Store, StoreDecision } from '../store.js';
import type { CheckEntry, Counter } from '../../limits/counter.js';

/** How a `RedisStore` counts. */
export interface RedisStoreOptions {
  /**
   * What every key begins with; no braces.
   * @default 'sluice'
   */
  prefix?: string;
  /**
   * How long a check may take, in milliseconds, with all that it waits for.
   * @default 250
   */
  timeoutMs?: number;
  /**
   * Whether `close` closes the connection.
   * @default false
   */
  ownsClient?: boolean;
  /** @internal Is called when the connection is used no longer. */
  release?: () => void;
  /** @internal */
  clock?: TestClock;
  /**
   * The script that decides.
   * @internal
   * @default that of the package
   */
  script?: string;
}

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

/** The jobs and the keys of one call at most; more are sent in further calls. Lua can pass no more than 8,000 arguments. */
const MAX_JOBS = 500;
/** The work of one call at most: a plain counter takes some two microseconds, and nobody else is served meanwhile. */
const MAX_WORK = 2500;
/**
 * Load is sustained after so many turns with so many jobs or more, each within milliseconds of the last one. Then, if no call is
 * in flight, half of the jobs wait for the next turn: or server and client would take turns, and each wait for the other.
 */
const SUSTAINED = { turns: 4, jobs: 4, withinMs: 10 };
const MAX_KEYS = 4000;
/** How often a check is asked again whose calendar window was not the server's. */
const MAX_TRIES = 3;

/** Counts on Redis: all checks that are made in one turn of the event loop travel in one call of one script. */
export class RedisStore implements Store {
  private readonly script: Script;
  private readonly prefix: string;
  private readonly timeoutMs: number;
  private readonly ownsClient: boolean;
  private readonly release: (() => void) | undefined;
  private readonly clock: TestClock | undefined;
  /** The master that has a counter's slot, as the Cluster's client knows it; none of one server. */
  readonly nodeOf?: (counter: Counter) => string;
  /** Whether it is a master of any slot, as the Cluster's client knows it. */
  readonly hasNode?: (node: string) => boolean;
  private readonly cluster: boolean;
  private queue: Job[] = [];
  private readonly sending = new Set<Promise<void>>();
  /** How many turns with many jobs there were in a row, and when the first job of the last turn was asked. */
  private turns = 0;
  private lastSince = 0;
  /** When the first of the queue was asked. */
  private since = 0;
  /** How far the server's clock is ahead of ours, in microseconds, as far as it matters: to find calendar windows. */
  private clockOffset = 0;

  /**
   * Asks Redis.
   *
   * @param client the connection, which need not be up yet
   * @param options how it counts
   */
  constructor(
    private readonly client: RedisClient,
    options: RedisStoreOptions = {},
  ) {
    const { prefix = 'sluice', timeoutMs = 250, ownsClient = false, release, clock, script } = options;
    this.script = new Script(client, script);
    this.cluster = isCluster(client);
    if (isCluster(client)) {
      this.nodeOf = (counter) => client.slots[this.slotOf(counter)]?.[0] ?? '';
      this.hasNode = (node) =>
        node === '' ? client.slots.length === 0 : client.slots.some(([master]) => master === node);
    }
    this.prefix = prefix;
    this.timeoutMs = timeoutMs;
    this.ownsClient = ownsClient;
    this.release = release;
    this.clock = clock;
  }

  /** Connects and loads the script. */
  async open(): Promise<void> {
    const since = performance.now();
    await connect(this.client);
    try {
      await withDeadline(this.script.load(), since + CONNECT_TIMEOUT_MS - performance.now(), CONNECT_TIMEOUT_MS);
    } catch (error) {
      throw asStoreError(error);
    }
  }

  /** What was asked before is answered first. */
  async close(): Promise<void> {
    while (this.queue.length > 0) this.flush();
    await Promise.all(this.sending);
    this.release?.();
    if (!this.ownsClient) return;
    try {
      if (this.client.status === 'ready') await withDeadline(this.client.quit(), this.timeoutMs);
    } catch {
      // The server has gone: there is nobody to say goodbye to.
    } finally {
      if (this.client.status !== 'end') this.client.disconnect();
    }
  }

  check(checks: readonly Check[]): Promise<StoreDecision[][]> {
    const only = checks[0];
    if (checks.length === 1 && only !== undefined) return this.decide(only).then((decisions) => [decisions]);
    return Promise.all(checks.map((check) => this.decide(check)));
  }

  async reserve(reservation: ReserveEntry): Promise<StoreDecision> {
    const entries = [reservation];
    const [decision] = await this.enqueue(
      reservation,
      (program) => program.reserve(reservation),
      (reply) => reply.check({ entries, refundable: true }),
    );
    return decision!;
  }

  async refund(refunds: readonly Refund[]): Promise<void> {
    await Promise.all(refunds.map((refund) => this.operate(refund, (program) => program.refund(refund))));
  }

  async penalize(charge: Charge): Promise<void> {
    await this.operate(charge, (program) => program.penalize(charge));
  }

  async block(counter: Counter, durationMs: number): Promise<void> {
    await this.operate(counter, (program) => program.block(counter, durationMs));
  }

  async renew(lease: HeldLease): Promise<boolean> {
    return (await this.operate(lease, (program) => program.renew(lease))) === 1;
  }

  async reset(counters: readonly Counter[]): Promise<void> {
    const calls = counters.map((counter) => {
      const key = keyOf(this.prefix, counter);
      return this.guarded(() => this.client.del(key, ...extraKeysOf(key, counter)));
    });
    await Promise.all(calls);
  }

  async history(counter: Counter): Promise<WindowCount[]> {
    if (counter.limit.algorithm.history === undefined) {
      throw new RateLimitArgumentError(messages.noHistory(counter.limit.name, algorithms.withAny('history')));
    }
    return this.enqueue(
      counter,
      (program) => program.history(counter),
      (reply) => reply.history(),
    );
  }

  /** One check has one deadline, in however many calls it is made. */
  private decide(check: Check, deadline = this.deadlineOf(check)): Promise<StoreDecision[]> {
    if (this.cluster && check.entries.length > 1) {
      const parts = this.bySlot(check.entries);
      if (parts.length > 1) return this.decideAcrossSlots(check, parts);
    }
    const decided = this.enqueue(
      check.entries[0]!,
      (program) => program.check(check),
      (reply) => reply.check(check),
      check.entries.reduce((keys, { limit }) => keys + keysOf(limit), 0),
      check.entries.reduce((work, { limit }) => work + workOf(limit), 0),
    );
    if (deadline === Infinity) return decided;
    return withDeadline(decided, deadline - performance.now(), this.timeoutMs).catch((error: unknown) => {
      if (error instanceof RateLimitStoreError) error.node ??= this.nodeOf?.(check.entries[0]!);
      throw error;
    });
  }

  /** Checks that are asked at once have the deadline of their call. */
  private deadlineOf({ since }: Check): number {
    return since === undefined ? Infinity : since + this.timeoutMs;
  }

  private operate(counter: Counter, write: Job['write']): Promise<number> {
    return this.enqueue(counter, write, (reply) => reply.operation());
  }

  /** Sends what is written with all else of this turn of the event loop. */
  private enqueue<T>(
    counter: Counter,
    write: Job['write'],
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

  /** Slot by slot; what was charged is given back when a later slot refuses. */
  private async decideAcrossSlots(check: Check, parts: CheckEntry[][]): Promise<StoreDecision[]> {
    const deadline = (check.since ?? performance.now()) + this.timeoutMs;
    const decisions = new Map<CheckEntry, StoreDecision>();
    const charged: Refund[] = [];
    let peek = check.peek ?? false;
    try {
      for (const entries of parts) {
        const answers = await this.decide({ entries, peek, refundable: true }, deadline);
        for (const [index, entry] of entries.entries()) {
          const decision = answers[index]!;
          decisions.set(entry, decision);
          if (!peek && decision.allowed)
            charged.push({ ...entry, units: entry.cost, ticket: decision.ticket, chargedAt: decision.chargedAt });
        }
        if (peek || entries.every(({ limit }, index) => limit.shadow || answers[index]!.allowed)) continue;
        charged.length -= entries.filter((_, index) => answers[index]!.allowed).length;
        await this.giveBack(charged, decisions, deadline);
        peek = true;
      }
    } catch (error) {
      // What it charged is given back in its own time.
      void this.refund(charged).catch(() => undefined);
      throw error;
    }
    return check.entries.map((entry) => {
      const { chargedAt, ...decision } = decisions.get(entry)!;
      return chargedAt === undefined || check.refundable !== true ? decision : { ...decision, chargedAt };
    });
  }

  private async giveBack(
    charged: Refund[],
    decisions: Map<CheckEntry, StoreDecision>,
    deadline: number,
  ): Promise<void> {
    await withDeadline(this.refund(charged.splice(0)), deadline - performance.now(), this.timeoutMs);
    const entries = [...decisions.keys()].filter((entry) => decisions.get(entry)!.allowed);
    for (const part of this.bySlot(entries)) {
      const answers = await this.decide({ entries: part, peek: true }, deadline);
      for (const [index, entry] of part.entries()) decisions.set(entry, answers[index]!);
    }
  }

  private bySlot(entries: readonly CheckEntry[]): CheckEntry[][] {
    return groupBy(entries, (entry) => this.slotOf(entry));
  }

  /** A node that says nothing does not say either that another one has its slots by now. */
  private blame(node: string, failure: RateLimitStoreError): void {
    failure.node = node;
    (this.client as Cluster).refreshSlotsCache();
  }

  private slotOf(counter: Counter): number {
    return calculateSlot(keyOf(this.prefix, counter));
  }

  /** The jobs to send now; the others are left for the next turn. */
  private next(): Job[] {
    const { queue } = this;
    const goesOn = queue.length >= SUSTAINED.jobs && this.since - this.lastSince < SUSTAINED.withinMs;
    this.turns = goesOn ? this.turns + 1 : 0;
    this.lastSince = this.since;
    const splits = this.turns > SUSTAINED.turns && queue.length >= 2 * SUSTAINED.jobs && this.sending.size === 0;
    this.queue = splits && !this.cluster ? queue.splice(Math.ceil(queue.length / 2)) : [];
    return queue;
  }

  private flush(): void {
    const jobs = this.next();
    if (this.queue.length > 0) setImmediate(() => this.flush());
    const groups = this.cluster ? groupBy(jobs, ({ counter }) => this.slotOf(counter)) : [jobs];
    for (const group of groups) {
      for (const batch of batches(group)) {
        const sent: Promise<void> = this.send(batch).finally(() => this.sending.delete(sent));
        this.sending.add(sent);
      }
    }
  }

  private async send(jobs: Job[]): Promise<void> {
    // Before the call, since its failure may make the client forget who had the slot.
    const node = this.nodeOf?.(jobs[0]!.counter);
    try {
      const program = this.program();
      for (const { write } of jobs) write(program);
      const reply = new Reply(await this.run(program));
      // Nobody is told anything by a reply that does not make sense to its end.
      const answers = jobs.map((job) => job.read(reply));
      reply.end();
      for (const [index, job] of jobs.entries()) {
        if (answers[index] !== undefined) job.resolve(answers[index]);
        else if (++job.tries < MAX_TRIES) this.retry(job);
        else job.reject(new RateLimitStoreError(messages.clockUnsettled()));
      }
      if (reply.serverTime === undefined) return;
      this.setClock(reply);
      this.flush();
    } catch (error) {
      const failure = asStoreError(error);
      if (node !== undefined) this.blame(node, failure);
      for (const { reject } of jobs) reject(failure);
    }
  }

  private retry(job: Job): void {
    this.queue.push(job);
    const error = new RateLimitStoreError(messages.storeTimeout(this.timeoutMs));
    setTimeout(() => job.reject(error), job.since + this.timeoutMs - performance.now()).unref();
  }

  private setClock({ serverTime }: Reply): void {
    if (serverTime !== undefined) this.clockOffset = serverTime - Date.now() * 1000;
  }

  private program(): Program {
    return new Program(this.prefix, this.clock?.now() ?? Date.now() * 1000 + this.clockOffset, this.clock);
  }

  private run(program: Program): Promise<unknown> {
    return this.guarded(() => this.script.run(program.keys, [program.toString()], this.timeoutMs));
  }

  /** Asks Redis only if it is there, and waits no longer than the deadline. */
  private async guarded<T>(call: () => Promise<T>): Promise<T> {
    const { status } = this.client;
    if (status !== 'ready') throw new RateLimitStoreError(messages.storeNotReady(status));
    try {
      return await withDeadline(call(), this.timeoutMs);
    } catch (error) {
      throw asStoreError(error);
    }
  }
}

function keysOf({ algorithm }: CompiledLimit): number {
  return 1 + (algorithm.extraKeys?.length ?? 0);
}

function workOf({ algorithm, parameters }: CompiledLimit): number {
  return algorithm.work?.(parameters) ?? 1;
}

/** Cuts jobs into calls. */
function* batches(jobs: readonly Job[]): Generator<Job[]> {
  let batch: Job[] = [];
  let keys = 0;
  let work = 0;
  for (const job of jobs) {
    const isFull = batch.length === MAX_JOBS || keys + job.keys > MAX_KEYS || work + job.work > MAX_WORK;
    if (isFull && batch.length > 0) {
      yield batch;
      batch = [];
      keys = 0;
      work = 0;
    }
    batch.push(job);
    keys += job.keys;
    work += job.work;
  }
  if (batch.length > 0) yield batch;
}

function groupBy<T>(values: readonly T[], group: (value: T) => number): T[][] {
  const groups = new Map<number, T[]>();
  for (const value of values) {
    const number = group(value);
    const members = groups.get(number);
    if (members === undefined) groups.set(number, [value]);
    else members.push(value);
  }
  return [...groups.values()];
}
