import { RateLimitTimeoutError } from '../../app/waiting/waiting-errors.js';
import { RateLimitStoreError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import type { LimitAsk } from '../../app/limiter/limit-checks.js';
import type { WaitOptions } from '../../app/waiting/waiting-call.js';
import { type ReadReport, readUpstream } from './headers/read-upstream.js';
import type { UpstreamResponse } from '../../engine/limit-headers/upstream-report.js';
import type { OutboundRule } from './learning/learned-rule.js';
import type { Learner } from './learning/learner.js';
import { Permit, type PermitStores } from './permit.js';
import type { OutboundSettings } from './read-options.js';
import { retryWaitMs, type SentCall } from './retry-wait.js';

/** The minimum time that reading a body may delay a call, in milliseconds, even if calls must not wait for their turn. */
const LEAST_BODY_MS = 1000;
const MOST_BODY_MS = 30_000;

/** The settings and services that a call gets from its caller. */
export interface CallContext {
  readonly settings: Pick<
    OutboundSettings<never, never>,
    'timeoutMs' | 'attempts' | 'parse' | 'maxLearnedWaitMs' | 'readsBody'
  >;
  readonly stores: PermitStores;
  readonly learner: Learner | undefined;
}

/** One call to an upstream, with all attempts to send it. Each attempt enters, is sent, and is answered or fails. */
export class OutboundCall {
  private attempt = 0;
  private sentAt = 0;
  private permit: Permit | undefined;

  constructor(
    private readonly asks: readonly LimitAsk<OutboundRule>[],
    private readonly turn: Required<Omit<WaitOptions, 'notBefore' | 'watcher'>>,
    private readonly context: CallContext,
  ) {}

  /** True if the current attempt may be repeated. */
  get mayRepeat(): boolean {
    return this.attempt < this.context.settings.attempts;
  }

  /** The maximum time that reading the body of a response may delay the call, in milliseconds. */
  get bodyMs(): number {
    return Math.min(Math.max(this.leftMs, LEAST_BODY_MS), MOST_BODY_MS);
  }

  /** The checks of its limits as currently configured. */
  private readonly entries = (): CheckEntry[] =>
    this.asks.map(({ rule, identity, cost }) => {
      return { limit: rule.usualLimit(identity), identity, cost, priority: rule.fixedPriority };
    });

  private get leftMs(): number {
    return this.turn.since + this.turn.timeoutMs - performance.now();
  }

  /** Waits for the turn of an attempt, and until `notBefore` on the monotonic clock. The caller then sends it at once. */
  async enter(notBefore = 0): Promise<Permit> {
    const { stores, learner } = this.context;
    const { waits } = stores;
    if (waits.isClosed) throw new RateLimitStoreError(messages.closed(), { code: 'SLUICE_SHUTTING_DOWN' });
    const rules = this.asks.map(({ rule }) => rule);
    const taken = await waits.wait({ rules, entries: this.entries }, { ...this.turn, notBefore, watcher: learner });
    this.permit = new Permit(taken, stores);
    this.attempt++;
    this.sentAt = performance.now();
    learner?.sent(this.permit.entries);
    return this.permit;
  }

  /** Records that no response came, and releases the units of the attempt. */
  failed(): void {
    const { permit } = this;
    if (permit === undefined) return;
    this.context.learner?.failed(permit.entries);
    void permit.release();
  }

  /** Records a response, and reports the upstream's limits. */
  answered(response: UpstreamResponse): ReadReport {
    const { settings, stores, learner } = this.context;
    const report = readUpstream(settings.parse, response, settings.maxLearnedWaitMs);
    if (learner !== undefined) {
      const { entries } = this.permit!;
      learner.answered(entries, report, performance.now() - this.sentAt);
      // Units that are no longer in flight are available to waiting calls.
      for (const entry of entries) stores.waits.wake(entry);
    }
    return report;
  }

  /**
   * How long an answered call has to wait before it is sent again, in milliseconds; `undefined` if it must not be sent again or there isn't
   * enough time.
   */
  waitMs(sent: SentCall, report: ReadReport, status: number): number | undefined {
    const waitMs = this.mayRepeat ? retryWaitMs(sent, report, status, this.attempt, Math.random()) : undefined;
    return waitMs === undefined || waitMs > this.leftMs ? undefined : waitMs;
  }

  /**
   * Releases the units and waits for `waitMs`, keeping the place in the queue. Returns `undefined` if its time is up before its turn.
   */
  async reenter(waitMs: number): Promise<Permit | undefined> {
    await this.permit!.release();
    try {
      return await this.enter(performance.now() + waitMs);
    } catch (error) {
      if (error instanceof RateLimitTimeoutError) return undefined;
      throw error;
    }
  }
}
