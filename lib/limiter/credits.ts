import { RateLimitArgumentError } from '../errors/errors.js';
import { planMessages } from '../errors/messages/plan.js';
import { assertCredits } from '../limits/arguments.js';
import { readCreditId } from '../limits/consume-options.js';
import { type CalledLimit, namedCounter } from './called-limit.js';
import type { CreditOptions } from './limiter-options.js';

/** Adds prepaid units to a key, or takes them back if `sign` is -1. Resolves to the credits left. */
export async function changeCredits(
  limit: CalledLimit,
  key: string,
  units: number,
  options: CreditOptions,
  sign: 1 | -1,
): Promise<number> {
  const { name, store, queues } = limit;
  const counter = namedCounter(limit, key);
  assertCredits(units);
  const id = readCreditId(options);
  if (!counter.limit.takesCredits) throw new RateLimitArgumentError(planMessages.noCredits(name));
  if (store.credit === undefined) throw new RateLimitArgumentError(planMessages.noCreditStore(name));
  const left = await store.credit({ ...counter, units: sign * units, id });
  queues.wake(counter);
  return left;
}
