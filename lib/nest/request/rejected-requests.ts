import { type ExecutionContext, HttpException, HttpStatus, Inject, Injectable } from '@nestjs/common';
import { RATE_LIMIT_STORE } from '../../app/config/tokens.js';
import { RateLimitExceededException } from '../../app/http/rate-limit.exceptions.js';
import { CallerAnswer, leasedResult } from '../../app/limiter/caller-answer.js';
import { LimitRegistry } from '../../app/rules/limit-registry.js';
import type { RuleEntry } from '../../app/rules/resolve/resolve.js';
import { requestEntries } from '../../app/rules/resolve/request-entries.js';
import type { Rule } from '../../app/rules/rule.js';
import { withAncestors } from '../../app/rules/route-rules.js';
import { partsOf } from '../../app/transports/read-request.js';
import { WaitQueues } from '../../app/waiting/wait-queues.js';
import { Attempts, logger } from '../../engine/errors/logger.js';
import { configError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { mapAll } from '../../engine/util/awaitable.js';
import { decideEnforced } from '../../storage/stores/decide.js';
import type { Layer } from '../../storage/stores/layers/store-layer.js';
import { countedUnits } from './outcome.js';
import { Transports } from './transports.js';

/** Counts requests that a guard has rejected. */
@Injectable()
export class RejectedRequests {
  private readonly attempts = new Attempts(logger);
  /** The limits with their ancestors. */
  private readonly levels = new WeakMap<Rule, readonly Rule[]>();

  constructor(
    private readonly registry: LimitRegistry,
    private readonly transports: Transports,
    private readonly queues: WaitQueues,
    @Inject(RATE_LIMIT_STORE) private readonly store: Layer,
  ) {}

  /**
   * Counts a request that was rejected with an error, according to the `count` of the limit. Throws `RateLimitExceededException` if the
   * limit is used up, and `RateLimitConfigError` for an invalid limit.
   */
  async count(limit: string, context: ExecutionContext, error: unknown): Promise<void> {
    const parts = partsOf(this.transports.of(context), context);
    const entries = await this.counting(await requestEntries(this.rules(limit), context, parts), context, error);
    if (entries.length === 0) return;
    const answer = new CallerAnswer(leasedResult, entries, this.store, this.queues);
    decideEnforced(this.store, { entries }, answer);
    const result = await answer.promise();
    if (!result.allowed) throw new RateLimitExceededException(result);
  }

  private rules(limit: string): readonly Rule[] {
    const location = `RateLimitRejections('${limit}')`;
    const rule = this.registry.rule(limit, { location, namespace: '' });
    let rules = this.levels.get(rule);
    if (rules === undefined) {
      rules = withAncestors([rule], location);
      if (rules.some((each) => each.limit.algorithm.leases !== undefined)) {
        throw configError('SLUICE_UNSUPPORTED_LIMIT', messages.holdsRejections(location));
      }
      this.levels.set(rule, rules);
    }
    return rules;
  }

  /** The entries of the limits that count the rejection, each with the units that it counts. */
  private async counting(
    entries: readonly RuleEntry[],
    context: ExecutionContext,
    error: unknown,
  ): Promise<readonly RuleEntry[]> {
    if (entries.every(({ rule }) => !rule.waitsForEnd)) return entries;
    const ended =
      context.getType() === 'http'
        ? { statusCode: error instanceof HttpException ? error.getStatus() : HttpStatus.FORBIDDEN }
        : { error };
    const outcome = { failed: true, aborted: false, context, ...ended };
    const counted = await mapAll(entries, ({ rule }) => countedUnits(rule, outcome, this.attempts));
    return entries.flatMap((entry, index) => {
      const units = counted[index]!;
      if (units === false) return [];
      return units === true ? entry : { ...entry, cost: units };
    });
  }
}
