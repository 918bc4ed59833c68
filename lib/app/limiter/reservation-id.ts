import { RateLimitArgumentError } from '../../engine/errors/errors.js';
import { holdMessages } from '../../engine/errors/messages/calls.js';
import type { Decision } from '../../engine/limits/decision.js';
import { isEstimate } from '../../storage/stores/store-decision.js';
import type { Refund } from '../../storage/stores/store.js';

/** The store with the held units, by the letter in an id. */
const SOURCES: Readonly<Record<string, Decision['source']>> = { r: 'redis', m: 'memory', f: 'fallback' };
/** The last part is for a candidate that was charged at the same time: the ticket of its hold, if it has one. */
const FORM = /^([0-9a-z]{1,11})-([0-9a-z]{1,11})-([0-9a-z]{1,11})-([rmf])(?:-([0-9a-z]{0,11}))?$/;
const RADIX = 36;

/** The data needed to find held units from any process. */
type Held = Pick<Refund, 'ticket' | 'units' | 'chargedAt' | 'source' | 'candidate'>;

/** The id of a reservation that holds units. */
export function reservationId(taken: Refund | undefined): string | undefined {
  if (taken === undefined || !isEstimate(taken)) return undefined;
  const letter = Object.entries(SOURCES).find(([, source]) => source === taken.source)?.[0] ?? 'r';
  const numbers = [taken.ticket!, taken.units, taken.chargedAt!];
  const parts = [...numbers.map((number) => number.toString(RADIX)), letter];
  if (taken.candidate?.allowed === true) parts.push(taken.candidate.ticket?.toString(RADIX) ?? '');
  return parts.join('-');
}

/** Reads an id. Throws `RateLimitArgumentError`. */
export function readReservationId(id: unknown): Held {
  const [, ...parts] = (typeof id === 'string' && FORM.exec(id)) || [];
  const [ticket, units, chargedAt] = parts.slice(0, 3).map((part) => Number.parseInt(part, RADIX));
  const ofCandidate = parts[4] === undefined || parts[4] === '' ? undefined : Number.parseInt(parts[4], RADIX);
  const isValid = [ticket, units, chargedAt, ofCandidate ?? 0].every((number) => Number.isSafeInteger(number));
  if (!isValid || units! < 1) throw new RateLimitArgumentError(holdMessages.wrongReservation(id));
  const held = { ticket: ticket!, units: units!, chargedAt: chargedAt!, source: SOURCES[parts[3]!] };
  // The limit and its candidate were charged in one call.
  if (parts[4] === undefined) return held;
  return { ...held, candidate: { allowed: true, chargedAt: chargedAt!, ...(ofCandidate && { ticket: ofCandidate }) } };
}
