import { type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { RATE_LIMIT_STORE } from '../../app/config/tokens.js';
import { RateLimitExceededException } from '../../app/http/rate-limit-exceeded.exception.js';
import { CallerAnswer, leasedResult } from '../../app/limiter/caller-answer.js';
import { LimitRegistry } from '../../app/rules/limit-registry.js';
import { requestEntries } from '../../app/rules/resolve/request-entries.js';
import { withAncestors } from '../../app/rules/route-rules.js';
import { partsOf } from '../../app/transports/read-request.js';
import { WaitQueues } from '../../app/waiting/wait-queues.js';
import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { decideEnforced } from '../../storage/stores/enforced-entries.js';
import type { Store } from '../../storage/stores/store.js';
import { Transports } from './transports.js';

/** Counts requests that a guard has rejected. */
@Injectable()
export class RejectedRequests {
  constructor(
    private readonly registry: LimitRegistry,
    private readonly transports: Transports,
    private readonly queues: WaitQueues,
    @Inject(RATE_LIMIT_STORE) private readonly store: Store,
  ) {}

  /** Counts a request. Throws `RateLimitExceededException` if the limit is used up, and `RateLimitConfigError` for a wrong limit. */
  async count(limit: string, context: ExecutionContext): Promise<void> {
    const location = `RateLimitRejections('${limit}')`;
    const rule = this.registry.rule(limit, { location, namespace: '' });
    const rules = withAncestors([rule], location);
    if (rules.some((each) => each.limit.algorithm.leases !== undefined)) {
      throw new RateLimitConfigError(messages.holdsRejections(location));
    }
    const parts = partsOf(this.transports.of(context), context);
    const entries = await requestEntries(rules, context, parts);
    if (entries.length === 0) return;
    const answer = new CallerAnswer(leasedResult, entries, this.store, this.queues);
    decideEnforced(this.store, { entries }, answer);
    const result = await answer.promise();
    if (!result.allowed) throw new RateLimitExceededException(result);
  }
}
