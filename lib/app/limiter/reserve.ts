import { algorithms } from '../../engine/algorithms/index.js';
import { holdMessages, withinMessages } from '../../engine/errors/messages/calls.js';
import { messages } from '../../engine/errors/messages/general.js';
import { assertActual, toMs } from '../../engine/limits/arguments.js';
import { type Asked, askedOf, type CallOptions, type WithinOptions } from '../../engine/limits/consume-options.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { versionsOf } from '../../engine/limits/limit-feature.js';
import { callEntries } from '../rules/resolve/call-entries.js';
import { decidedEnforced } from '../../storage/stores/decide.js';
import type { StoreDecision } from '../../storage/stores/store.js';
import { openDecision, chargeOf, chargesOf, toCallerDecision } from '../../storage/stores/store-decision.js';
import { refuseHeld, type CalledLimit, isNested, ownCounter, unsupportedCall } from './called-limit.js';
import { levelDecision } from './caller-answer.js';
import type { Duration } from '../../engine/options/values.js';
import { readReservationId, Reservation } from './reservation.js';

/** The units that a call reserves. */
export interface ReserveOptions extends CallOptions {
  /**
   * The maximum wait: milliseconds or a duration such as `'5s'`, at most 1 year. If the units would come later, the reservation is
   * rejected.
   * @default '1y'
   */
  maxWait?: Duration | undefined;
}

const RESERVE_OPTIONS = ['maxWait'] as const satisfies readonly (keyof ReserveOptions)[];

/** Reserves units of a limit: for a future time, as an estimate, or, if the limit has parents, only units that are available now. */
export async function reserve(
  limit: CalledLimit,
  key: string,
  options: ReserveOptions | undefined,
): Promise<Reservation> {
  const asked = askedOf(options, limit.rule, RESERVE_OPTIONS);
  if (isNested(limit, asked.within)) return reserveLevels(limit, key, asked, options?.maxWait);
  const [entry] = callEntries(limit.rule, key, asked);
  const maxWaitMs = toMs('maxWait', options?.maxWait ?? '1y');
  const isHeld = entry.limit.estimates !== undefined;
  const isAhead = !isHeld && entry.limit.features?.some(({ withoutEstimates }) => withoutEstimates === true) !== true;
  if (isAhead) refuseUnreservable(entry.limit);
  const { store } = limit;
  // With a `hold`, or a feature without estimates, only units that fit now are reserved.
  const ask = isAhead
    ? () => store.reserve({ ...entry, maxWaitMs })
    : async () => (await store.decided({ entries: [entry], hold: isHeld, refundable: true }))[0]!;
  return reserveOwn(limit, entry, ask);
}

/** Settles a reservation of a limit with a `hold`, by its id. */
export async function settleHeld(
  limit: CalledLimit,
  key: string,
  id: string,
  actual: number,
  options: WithinOptions | undefined,
): Promise<void> {
  const counter = ownCounter(limit, key, options);
  const { algorithm, estimates } = counter.limit;
  const held = readReservationId(id);
  assertActual(actual);
  if (estimates === undefined) throw unsupportedCall(holdMessages.noHold(limit.name, algorithm.name));
  await limit.store.refund([{ ...counter, ...held, actual }]);
  limit.queues.wake(counter);
}

/** Throws for a limit whose units can't be reserved for a future time. */
function refuseUnreservable(limit: CompiledLimit): void {
  const { name, algorithm } = limit;
  if (algorithm.holds !== undefined) throw unsupportedCall(holdMessages.noHold(name, algorithm.name));
  for (const versions of versionsOf(limit)) {
    if (versions.notReservable !== undefined) throw unsupportedCall(versions.notReservable());
  }
  if (algorithm.reservation === undefined && algorithm.queue === undefined) {
    const reservable = algorithms.withAny('reservation', 'queue', 'holds');
    throw unsupportedCall(messages.notReservable(name, algorithm.name, reservable));
  }
}

/** Reserves units of one limit, for which `ask` calls the store. */
async function reserveOwn(
  { store, queues }: CalledLimit,
  entry: CheckEntry,
  ask: () => Promise<StoreDecision>,
): Promise<Reservation> {
  const { limit } = entry;
  if (limit.off) return new Reservation(openDecision(limit), undefined, store);
  const answer = await ask();
  const taken = answer.allowed ? chargeOf(entry, answer) : undefined;
  return new Reservation(toCallerDecision(answer, limit), taken, store, queues);
}

/** Reserves units of all levels that fit now. */
async function reserveLevels(
  { name, rule, store, queues }: CalledLimit,
  key: string,
  asked: Asked,
  maxWait: unknown,
): Promise<Reservation> {
  const entries = callEntries(rule, key, asked);
  if (maxWait !== undefined) throw unsupportedCall(withinMessages.noFutureUnits(name));
  refuseHeld(entries, 'reserved');
  const answers = await decidedEnforced(store, { entries, hold: true, refundable: true });
  const decision = levelDecision(answers, entries, store, queues);
  const taken = decision.allowed ? chargesOf(entries, answers) : undefined;
  return new Reservation(decision, taken, store, queues);
}
