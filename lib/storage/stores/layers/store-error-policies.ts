import { Attempts, logger } from '../../../engine/errors/logger.js';
import type { RateLimitStoreError } from '../../../engine/errors/errors.js';
import { messages } from '../../../engine/errors/messages/general.js';
import { STORE_ERROR_POLICIES, type StoreErrorPolicy } from '../../../engine/limits/compiled-limit.js';
import type { CheckEntry } from '../../../engine/limits/counter.js';
import { shownIdentity } from '../../../engine/limits/hierarchy.js';
import type { Charge, StoreDecision } from '../store.js';

const isPolicy = (got: StoreErrorPolicy) => STORE_ERROR_POLICIES.includes(got);

/** Applies the `onStoreError` of each limit. */
export class StoreErrorPolicies {
  /** A function of the app may fail on each check. */
  private readonly attempts = new Attempts(logger);

  /** The policy for units of a limit whose store failed with this error. A shadow limit never rejects. */
  of(charge: Charge, error: RateLimitStoreError): StoreErrorPolicy {
    const policy = this.chosen(charge, error);
    return policy === 'deny' && charge.limit.shadow ? 'allow' : policy;
  }

  /** An error of the function must not fail the request. */
  private chosen(charge: Charge, error: RateLimitStoreError): StoreErrorPolicy {
    const { limit, units } = charge;
    const { onStoreError, name } = limit;
    if (typeof onStoreError !== 'function') return onStoreError;
    const choose = () => onStoreError(error, { limit: name, key: shownIdentity(charge), cost: units });
    const texts = { message: messages.policyFailed(name), wrong: messages.wrongPolicy };
    return this.attempts.call(choose, isPolicy, texts) ?? 'local';
  }
}

/** The decision that lets a request pass uncounted. */
export function uncountedDecision({ limit }: CheckEntry): StoreDecision {
  return {
    allowed: true,
    limit: limit.name,
    quota: limit.quota,
    remaining: limit.quota,
    retryAfterMs: 0,
    resetAfterMs: 0,
    delayMs: 0,
    source: 'fallback',
  };
}
