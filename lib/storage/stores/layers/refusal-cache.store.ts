import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { InstanceChannel, Listener } from '../../redis/instance-channel.js';
import { BoundedMap, Kept } from '../../../engine/util/bounded-map.js';
import { isRefusal } from '../../../engine/limits/check-result.js';
import { type Counter, counterId } from '../../../engine/limits/counter.js';
import { report } from '../decide.js';
import {
  type Operation,
  type OperationAnswer,
  type OperationCounter,
  type OperationName,
  rowOf,
} from '../operation.js';
import type { Check, CheckAnswer, Store, StoreDecision } from '../store.js';
import { StoreLayer } from './store-layer.js';

/** A refusal, and how long it holds unless the channel reports a change; in milliseconds of the process's clock. */
class Refusal extends Kept {
  constructor(
    key: string,
    /** A limit whose rate has changed is another object. */
    private readonly limits: readonly CompiledLimit[],
    readonly decisions: readonly StoreDecision[],
    readonly until: number,
    readonly receivedAt: number,
  ) {
    super(key);
  }

  isOf({ entries }: Check): boolean {
    return entries.every(({ limit }, index) => limit === this.limits[index]);
  }
}

/** How many refused checks are remembered, and how many bytes they may take; the oldest is evicted first. */
const MAX_REFUSALS = 10_000;
const MAX_BYTES = 20_000_000;
/** The bytes of a decision, by estimate. */
const DECISION_BYTES = 300;

/**
 * Remembers refusals: the same check is refused again without a call until its wait is over. Units can come back sooner only by a
 * refund, a reset or an unblock, which every instance publishes to all others; while it cannot receive these messages, it asks.
 * What is learnt from an upstream frees units with each answer, so refusals of limits that learn are not remembered.
 */
export class RefusalCacheStore extends StoreLayer implements Listener {
  private readonly refusals = new BoundedMap<Refusal>(MAX_REFUSALS, MAX_BYTES);
  /** The lineages of limits that learn. */
  private readonly learning = new Set<string>();
  private isListening = false;
  /** Increases whenever what was asked before may no longer be refused. */
  private epoch = 0;

  constructor(
    inner: Store,
    private readonly channel: InstanceChannel,
  ) {
    super(inner);
  }

  override async open(): Promise<void> {
    await super.open();
    this.channel.listen(this);
  }

  onMessage(): void {
    this.isListening = true;
    this.forget();
  }

  onDisconnect(): void {
    this.isListening = false;
    this.forget();
  }

  override async close(): Promise<void> {
    this.onDisconnect();
    await super.close();
  }

  override decide(check: Check, answer: CheckAnswer): void {
    if (!this.isListening || check.peek === true || check.reserving === true || !this.isRemembered(check)) {
      this.below.decide(check, answer);
      return;
    }
    const now = performance.now();
    const remembered = this.refusals.size === 0 ? undefined : this.recall(check, now);
    if (remembered !== undefined) report(answer, remembered);
    else this.below.decide(check, new RememberedAnswer(this, check, answer, this.epoch, now));
  }

  /** Remembers a refusal, unless units may have come back since it was asked for. */
  remember(check: Check, decisions: readonly StoreDecision[], epoch: number, askedAt: number): void {
    if (epoch !== this.epoch) return;
    const refused = decisions.filter(({ allowed }) => !allowed);
    const enforced = check.entries.some(({ limit }, index) => isRefusal(limit, decisions[index]!));
    if (!enforced || decisions.some(({ source }) => source !== 'redis')) return;
    // A request that never fits begins a new block whenever none is in force, and one that begins none must not stand for one that does.
    const beginsNone = check.hold === true || check.waits === true;
    const mayBlock = (limit: CompiledLimit, index: number) =>
      limit.blockFor > 0 && (beginsNone || decisions[index]!.retryAfterMs === Infinity);
    if (check.entries.some(({ limit }, index) => mayBlock(limit, index))) return;
    // From when it was asked: the server decided later, so the refusal holds at least this long.
    const until = askedAt + Math.min(...refused.map(({ retryAfterMs }) => retryAfterMs));
    const receivedAt = performance.now();
    if (until <= receivedAt) return;
    const key = keyOf(check);
    const before = this.refusals.get(key);
    if (before !== undefined) this.refusals.delete(before);
    const bytes = 2 * key.length + DECISION_BYTES * decisions.length;
    const limits = check.entries.map(({ limit }) => limit);
    // The caller may change its own.
    const copies = decisions.map((decision) => ({ ...decision }));
    this.refusals.put(new Refusal(key, limits, copies, until, receivedAt), bytes, false);
  }

  override async operate<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>> {
    const counters: readonly OperationCounter[] = operation.counters;
    if (operation.name === 'learn') this.rememberNone(counters);
    if (rowOf(operation).frees === undefined) return super.operate(operation);
    const since = performance.now();
    const answer = await super.operate(operation);
    if (counters.some(mayFree)) {
      // What any instance may have remembered is now outdated, here at once.
      this.forget();
      await this.channel.publish('', since);
    }
    return answer;
  }

  /** Stops remembering refusals of limits that learn. */
  private rememberNone(counters: readonly Counter[]): void {
    for (const { limit } of counters) {
      if (!limit.remembersRefusals || this.learning.has(limit.lineage)) continue;
      this.learning.add(limit.lineage);
      this.forget();
    }
  }

  /** Whether refusals of a check may be remembered. */
  private isRemembered({ entries }: Check): boolean {
    for (const { limit } of entries) {
      if (!limit.remembersRefusals || (this.learning.size > 0 && this.learning.has(limit.lineage))) return false;
    }
    return true;
  }

  private recall(check: Check, now: number): StoreDecision[] | undefined {
    const refusal = this.refusals.get(keyOf(check));
    if (refusal === undefined) return undefined;
    if (refusal.until <= now || !refusal.isOf(check)) {
      this.refusals.delete(refusal);
      return undefined;
    }
    const passed = now - refusal.receivedAt;
    const left = (ms: number) => Math.max(0, Math.ceil(ms - passed));
    return refusal.decisions.map((decision) => ({
      ...decision,
      retryAfterMs: left(decision.retryAfterMs),
      resetAfterMs: left(decision.resetAfterMs),
      source: 'cache',
    }));
  }

  private forget(): void {
    this.epoch++;
    this.refusals.clear();
  }
}

/** Passes on an answer, and remembers its refusals. */
class RememberedAnswer implements CheckAnswer {
  constructor(
    private readonly store: RefusalCacheStore,
    private readonly check: Check,
    private readonly answer: CheckAnswer,
    private readonly epoch: number,
    private readonly askedAt: number,
  ) {}

  decided(decisions: StoreDecision[]): void {
    if (!decisions.every(isAllowed)) this.store.remember(this.check, decisions, this.epoch, this.askedAt);
    this.answer.decided(decisions);
  }

  failed(error: unknown): void {
    this.answer.failed(error);
  }
}

/** Whether it may free units: those that were used under a claim do not come back. */
function mayFree({ limit, claim }: OperationCounter): boolean {
  return limit.remembersRefusals && claim?.isSpent !== true;
}

function isAllowed({ allowed }: StoreDecision): boolean {
  return allowed;
}

const UP_TO = 'up to';

/** Identifies a check, including the versions of its limits; the length of each id shows where it ends. */
function keyOf({ entries, upTo = false }: Check): string {
  return entries
    .map(({ limit, identity, cost }) => {
      const id = counterId(limit, identity);
      const version = limit.line === undefined ? '' : ` ${limit.line.length} ${limit.line}`;
      // A check that takes as many units as fit is refused if not one fits, whatever its cost.
      return `${upTo ? UP_TO : cost}${version} ${id.length} ${id}`;
    })
    .join('\n');
}
