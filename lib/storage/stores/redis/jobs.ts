import type { RateLimitStoreError } from '../../../engine/errors/errors.js';
import { isRefusal } from '../../../engine/limits/check-result.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { CheckEntry, Counter } from '../../../engine/limits/counter.js';
import { report } from '../decide.js';
import type { Check, CheckAnswer, StoreDecision } from '../store.js';
import type { GeneralProgram } from './general-program.js';
import type { Program } from './program.js';
import { workOf } from '../work.js';
import type { Reply } from './reply.js';

/** What is on its way to Redis. */
export abstract class Job {
  /** When it was asked, on the process's monotonic clock. */
  since = 0;
  /** How often it was asked. */
  tries = 0;
  /** Its answer, or its failure, was handed on. */
  private isSettled = false;

  constructor(
    /** One of its counters; they all lie in one slot. */
    readonly counter: Counter,
    /** The keys that it needs, at most. */
    readonly keys: number,
    /** How much it asks of the server, in checks of a plain counter. */
    readonly work: number,
    /** The number of replicas that have to confirm what it changes. */
    readonly replicas = 0,
  ) {}

  /** Whether it changed something, once its reply is read. */
  get isWritten(): boolean {
    return true;
  }

  /** Whether the caller has an answer or an error. */
  get isOver(): boolean {
    return this.isSettled;
  }

  /** All of its counters. */
  get counters(): readonly Counter[] {
    return [this.counter];
  }

  /** What it checks, if it is a check. */
  readonly check: Check | undefined = undefined;

  abstract write(program: Program): void;
  /** Reads its part of the reply. Says whether it was done; else it is to be asked again. */
  abstract read(reply: Reply): boolean;

  /** Hands on what was read, unless it has failed. */
  settle(): void {
    if (this.isSettled) return;
    this.isSettled = true;
    this.handOn();
  }

  /** Fails it, unless it is answered. */
  reject(error: RateLimitStoreError): void {
    if (this.isSettled) return;
    this.isSettled = true;
    this.fail(error);
  }

  protected abstract handOn(): void;
  protected abstract fail(error: RateLimitStoreError): void;
}

/** A check that charges, or looks. */
export class CheckJob extends Job {
  private decisions: StoreDecision[] | undefined;

  constructor(
    override readonly check: Check,
    private readonly answer: CheckAnswer,
  ) {
    const { entries } = check;
    const first = entries[0]!;
    const isOnly = entries.length === 1;
    super(
      first,
      isOnly ? keysOf(first.limit) : sum(entries, keysOf),
      isOnly ? workOf(first.limit) : sum(entries, workOf),
      check.peek === true ? 0 : isOnly ? first.limit.replicas : most(entries),
    );
  }

  /** What is refused is not charged. */
  override get isWritten(): boolean {
    const { entries } = this.check;
    return this.decisions!.every((decision, index) => !isRefusal(entries[index]!.limit, decision));
  }

  override get counters(): readonly Counter[] {
    return this.check.entries;
  }

  write(program: Program): void {
    program.check(this.check);
  }

  read(reply: Reply): boolean {
    this.decisions = reply.check(this.check);
    return this.decisions !== undefined;
  }

  protected handOn(): void {
    report(this.answer, this.decisions!);
  }

  protected fail(error: RateLimitStoreError): void {
    this.answer.failed(error);
  }
}

/** Anything else that is done with one counter, or with that of its candidate, too. */
export class OperationJob<T> extends Job {
  private result: T | undefined;

  constructor(
    counters: readonly Counter[],
    private readonly writeOperation: (program: GeneralProgram) => void,
    private readonly readResult: (reply: Reply) => T | undefined,
    private readonly resolve: (result: T) => void,
    protected readonly fail: (error: RateLimitStoreError) => void,
    /** The keys that it needs besides those of the counter. */
    moreKeys = 0,
    /** What it takes besides what any operation does, in checks of a plain counter. */
    moreWork = 0,
    /** Whether it only looks. */
    looks = false,
  ) {
    const [first] = counters as readonly [Counter];
    const work = sum(counters, workOf) + OPERATION_WORK + moreWork;
    super(first, sum(counters, keysOf) + moreKeys, work, looks ? 0 : first.limit.replicas);
  }

  write(program: Program): void {
    this.writeOperation(program.general);
  }

  read(reply: Reply): boolean {
    this.result = this.readResult(reply);
    return this.result !== undefined;
  }

  protected handOn(): void {
    this.resolve(this.result!);
  }
}

/** What an operation takes more than a check: the fast way knows none of them. */
const OPERATION_WORK = 2;

/** The most keys that a limit needs. */
function keysOf({ algorithm, parameters, features = [], takesCredits }: CompiledLimit): number {
  let own = 1 + (algorithm.extraKeys?.length ?? 0) + (takesCredits ? 1 : 0);
  for (const { script } of features) own += script?.keys ?? 0;
  return own + (algorithm.moreKeys?.(parameters).length ?? 0);
}

function sum(counters: readonly Counter[], of: (limit: CompiledLimit) => number): number {
  let total = 0;
  for (const { limit } of counters) total += of(limit);
  return total;
}

function most(entries: readonly CheckEntry[]): number {
  let replicas = 0;
  for (const { limit } of entries) replicas = Math.max(replicas, limit.replicas);
  return replicas;
}
