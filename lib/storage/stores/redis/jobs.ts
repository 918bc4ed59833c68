import type { RateLimitStoreError } from '../../../engine/errors/errors.js';
import { isRefusal } from '../../../engine/limits/decision.js';
import { type CompiledLimit, workOf } from '../../../engine/limits/compiled-limit.js';
import type { CheckEntry, Counter } from '../../../engine/limits/counter.js';
import { report } from '../decide.js';
import type { Check, CheckAnswer, StoreDecision } from '../store.js';
import type { GeneralProgram } from './general-program.js';
import type { Program } from './program.js';
import type { Reply } from './reply.js';

/** A check or operation on its way to Redis. */
export abstract class Job {
  /** When it was requested, on the process's monotonic clock. */
  since = 0;
  /** The number of times it was sent. */
  tries = 0;
  /** True once its answer or its failure was passed on. */
  isOver = false;

  constructor(
    /** One of its counters, all of which are in one slot. */
    readonly counter: Counter,
    /** The maximum number of keys that it needs. */
    readonly keys: number,
    /** Its load on the server, in checks of a plain counter. */
    readonly work: number,
    /** The number of replicas that have to confirm its writes. */
    readonly replicas = 0,
  ) {}

  /** True if it has written something. Known once its reply was read. */
  get isWritten(): boolean {
    return true;
  }

  /** All of its counters. */
  get counters(): readonly Counter[] {
    return [this.counter];
  }

  /** The check, if it is one. */
  readonly check: Check | undefined = undefined;

  abstract write(program: Program): void;
  /** Reads its part of the reply. Returns false if it was not done and has to be sent again. */
  abstract read(reply: Reply): boolean;

  /** Passes the answer on, unless the job has failed. */
  settle(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.handOn();
  }

  /** Fails the job, unless it was answered. */
  reject(error: RateLimitStoreError): void {
    if (this.isOver) return;
    this.isOver = true;
    this.fail(error);
  }

  protected abstract handOn(): void;
  protected abstract fail(error: RateLimitStoreError): void;
}

/** A check that charges, or only reads. */
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

  /** Rejected checks charge nothing. */
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

/** Any other operation on one counter, or on that counter and its candidate's. */
export class OperationJob<T> extends Job {
  private result: T | undefined;

  constructor(
    counters: readonly Counter[],
    private readonly writeOperation: (program: GeneralProgram) => void,
    private readonly readResult: (reply: Reply) => T | undefined,
    private readonly resolve: (result: T) => void,
    protected readonly fail: (error: RateLimitStoreError) => void,
    /** The number of keys in addition to those of the counter. */
    moreKeys = 0,
    /** The additional load compared to any operation, in checks of a plain counter. */
    moreWork = 0,
    /** True if it only reads. */
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

/** The additional load of an operation compared to a check, since the fast way supports no operations. */
const OPERATION_WORK = 2;

/** The maximum number of keys that a limit needs. */
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
