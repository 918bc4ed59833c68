import { MOST_UNITS } from '../../engine/algorithms/scale.js';
import { argumentError, RateLimitArgumentError } from '../../engine/errors/errors.js';
import { planMessages } from '../../engine/errors/messages/rates.js';
import { readMembers } from '../../engine/limits/consume-options.js';
import { whole } from '../../engine/options/kinds.js';
import { type CalledLimit, namedCounter, unsupportedCall } from './called-limit.js';

/** Identifies a credit. */
export interface CreditOptions {
  /**
   * An id to avoid double credits: of all credits of a key with the same id, only the first counts. Use for example the id of a payment,
   * whose webhook may be delivered twice. An id is stored for 35 days. It is a non-empty string; `undefined` is an error, so that a payment
   * whose id was misread isn't credited each time.
   * @default each credit counts, if the options have no `id`
   */
  id?: string | undefined;
}

const credits = whole(1, MOST_UNITS);

/** Adds prepaid units to a key, or withdraws them if `sign` is -1. Resolves to the remaining credits. */
export async function changeCredits(
  limit: CalledLimit,
  key: string,
  units: number,
  options: CreditOptions,
  sign: 1 | -1,
): Promise<number> {
  const { name, store, queues } = limit;
  const counter = namedCounter(limit, key);
  if (!credits.isValid(units)) throw argumentError('SLUICE_INVALID_COST', planMessages.wrongCredits(units));
  const id = readId(options);
  if (!counter.limit.takesCredits) throw unsupportedCall(planMessages.noCredits(name));
  if (store.credit === undefined) throw unsupportedCall(planMessages.noCreditStore(name));
  const left = await store.credit({ ...counter, units: sign * units, id });
  queues.wake(counter);
  return left;
}

/** An `undefined` id is an error: the id of a payment may have been misread, and without an id the units would be credited each time. */
function readId(given: unknown): string | undefined {
  const options = readMembers<{ id: unknown }>(given, ['id'], planMessages.wrongCreditOptions);
  if (!('id' in options)) return undefined;
  const { id } = options;
  if (typeof id !== 'string' || id === '') throw new RateLimitArgumentError(planMessages.wrongCreditId(id));
  return id;
}
