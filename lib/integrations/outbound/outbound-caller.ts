import { RateLimitArgumentError, RateLimitStoreError } from '../../engine/errors/errors.js';
import { logger, OnceLogger } from '../../engine/errors/logger.js';
import { outboundMessages } from '../../engine/errors/messages/outbound.js';
import { assertActual } from '../../engine/limits/arguments.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { askOf, type LimitAsk } from '../../app/limiter/limit-checks.js';
import type { Flights } from './learning/flights.js';
import { LearnedRule, type OutboundRule } from './learning/learned-rule.js';
import { Learner } from './learning/learner.js';
import { OutboundCall } from './outbound-call.js';
import type { Permit, PermitStores } from './permit.js';
import type { OutboundSettings } from './read-options.js';

const log = new OnceLogger(logger);

/** Limits calls of one kind: checks their limits, and settles their actual cost. It doesn't depend on a client. */
export class OutboundCaller<Sent, Answer> {
  private readonly learner: Learner | undefined;

  constructor(
    readonly rules: readonly OutboundRule[],
    readonly settings: OutboundSettings<Sent, Answer>,
    private readonly stores: PermitStores,
    flights: Flights,
  ) {
    const { learn, cost } = settings;
    const terms = { names: typeof learn === 'boolean' ? undefined : learn, hasCost: cost !== undefined };
    this.learner = learn === false ? undefined : new Learner(flights, terms, settings.maxLearnedWaitMs);
  }

  /**
   * Makes a call that was requested at `since`, a time of the monotonic clock. `copy` creates a copy of the request for each of the app's
   * functions. Rejects if one of these returns an invalid value.
   */
  async call(copy: () => Sent, signal: AbortSignal | undefined, since = performance.now()): Promise<OutboundCall> {
    const { settings, stores, learner } = this;
    const asks: LimitAsk<OutboundRule>[] = [];
    for (const rule of this.rules) asks.push(await this.askOf(rule, copy));
    const aheadMs = this.priorityOf(copy) * settings.ageingMs;
    signal?.throwIfAborted();
    return new OutboundCall(
      asks,
      { timeoutMs: settings.timeoutMs, signal, since, aheadMs },
      { settings, stores, learner },
    );
  }

  /**
   * Settles the actual cost of a call, if the app's function returns one. `copy` creates a copy of the response for each limit. Never
   * rejects.
   */
  async settle(permit: Permit, copy: () => Answer): Promise<void> {
    if (this.settings.settle === undefined) return;
    const counted = permit.entries.filter(({ limit }) => limit.algorithm.leases === undefined);
    await Promise.all(counted.map((entry) => this.settleOne(permit, entry, copy)));
  }

  private async settleOne(permit: Permit, entry: CheckEntry, copy: () => Answer): Promise<void> {
    const { settle, location } = this.settings;
    const { name } = entry.limit;
    try {
      const actual = await settle!(copy(), name);
      if (actual === undefined) return;
      assertActual(actual);
      await permit.settle(entry, actual);
    } catch (error) {
      // The store reports its own errors.
      if (!(error instanceof RateLimitStoreError)) log.error(outboundMessages.settleFailed(location, name), error);
    }
  }

  private async askOf(rule: OutboundRule, copy: () => Sent): Promise<LimitAsk<OutboundRule>> {
    const asked = await askOf(rule, this.settings, copy);
    if (rule instanceof LearnedRule) rule.noteCost(asked.identity, asked.cost);
    return asked;
  }

  private priorityOf(copy: () => Sent): number {
    const { priority, location } = this.settings;
    const given: unknown = typeof priority === 'function' ? priority(copy()) : priority;
    if (Number.isFinite(given)) return given as number;
    throw new RateLimitArgumentError(outboundMessages.wrongPriority(location, given), {
      code: 'SLUICE_INVALID_RESULT',
    });
  }
}
