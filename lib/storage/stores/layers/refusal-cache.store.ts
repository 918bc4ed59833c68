import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { InstanceChannel, Listener } from '../../redis/instance-channel.js';
import { BoundedMap, Kept } from '../../../engine/util/bounded-maps.js';
import { isRefusal } from '../../../engine/limits/decision.js';
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

/** A rejection and when it expires, in milliseconds of the process's clock, unless the channel reports a change before that. */
class Refusal extends Kept {
  constructor(
    key: string,
    /** A changed rate makes another limit object. */
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

/** Maximum number of rejected checks to remember, and the bytes that they may take; the oldest is evicted first. */
const MAX_REFUSALS = 10_000;
const MAX_BYTES = 20_000_000;
/** The estimated bytes of a decision. */
const DECISION_BYTES = 300;

/**
 * Remembers rejections: the same check is rejected again without a call until its wait is over. Only a refund, a reset or an unblock
 * returns units sooner, and every instance publishes these to all others. While an instance can't receive these messages, it calls the
 * store. A limit that learns from an upstream may get units back with each response, so its rejections are not remembered.
 */
export class RefusalCacheStore extends StoreLayer implements Listener {
  private readonly refusals = new BoundedMap<Refusal>(MAX_REFUSALS, MAX_BYTES);
  /** The lineages of limits that learn. */
  private readonly learning = new Set<string>();
  private isListening = false;
  /** Increases whenever checks that were rejected before may pass. */
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
      this.inner.decide(check, answer);
      return;
    }
    const now = performance.now();
    const remembered = this.refusals.size === 0 ? undefined : this.recall(check, now);
    if (remembered !== undefined) report(answer, remembered);
    else this.inner.decide(check, new RememberedAnswer(this, check, answer, this.epoch, now));
  }

  /** Remembers a rejection, unless units may have come back since the check was sent. */
  remember(check: Check, decisions: readonly StoreDecision[], epoch: number, askedAt: number): void {
    if (epoch !== this.epoch) return;
    const refused = decisions.filter(({ allowed }) => !allowed);
    const enforced = check.entries.some(({ limit }, index) => isRefusal(limit, decisions[index]!));
    if (!enforced || decisions.some(({ source }) => source !== 'redis')) return;
    // A check that never fits begins a new block whenever none is in force. A check that begins no block must not replace such a check.
    const beginsNone = check.hold === true || check.waits === true;
    const mayBlock = (limit: CompiledLimit, index: number) =>
      limit.blockFor > 0 && (beginsNone || decisions[index]!.retryAfterMs === Infinity);
    if (check.entries.some(({ limit }, index) => mayBlock(limit, index))) return;
    // Counted from when the check was sent: the server decided later, so the rejection is valid at least this long.
    const until = askedAt + Math.min(...refused.map(({ retryAfterMs }) => retryAfterMs));
    const receivedAt = performance.now();
    if (until <= receivedAt) return;
    const key = keyOf(check);
    const before = this.refusals.get(key);
    if (before !== undefined) this.refusals.delete(before);
    const bytes = 2 * key.length + DECISION_BYTES * decisions.length;
    const limits = check.entries.map(({ limit }) => limit);
    // The caller may modify its own decisions.
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
      // Everything that any instance remembers is outdated now; this instance forgets it immediately.
      this.forget();
      await this.channel.publish('', since);
    }
    return answer;
  }

  /** Stops remembering rejections of limits that learn. */
  private rememberNone(counters: readonly Counter[]): void {
    for (const { limit } of counters) {
      if (!limit.remembersRefusals || this.learning.has(limit.lineage)) continue;
      this.learning.add(limit.lineage);
      this.forget();
    }
  }

  /** Returns true if rejections of a check may be remembered. */
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

/** Passes an answer on, and remembers its rejections. */
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

/** Returns true if an operation may free units. Units that were used under a claim don't come back. */
function mayFree({ limit, claim }: OperationCounter): boolean {
  return limit.remembersRefusals && claim?.isSpent !== true;
}

function isAllowed({ allowed }: StoreDecision): boolean {
  return allowed;
}

const UP_TO = 'up to';

/** Identifies a check, including the versions of its limits. The length before each id marks its end. */
function keyOf({ entries, upTo = false }: Check): string {
  return entries
    .map(({ limit, identity, cost }) => {
      const id = counterId(limit, identity);
      const version = limit.line === undefined ? '' : ` ${limit.line.length} ${limit.line}`;
      // A check that takes as many units as fit is rejected if not even one fits, regardless of its cost.
      return `${upTo ? UP_TO : cost}${version} ${id.length} ${id}`;
    })
    .join('\n');
}
