import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import type { StoreDecision } from '../../storage/stores/store.js';

/** Units that can be used from a certain time on. */
export interface TimedUnits {
  /** The limit on which `decision` and `usableAt` are based. */
  readonly limit: CompiledLimit;
  readonly decision: StoreDecision;
  /** In milliseconds of the monotonic clock. */
  readonly usableAt: number;
}

/** Units that are reserved for a future time. */
export interface ReservedUnits extends TimedUnits {
  readonly identity: string;
  readonly units: number;
  /** The request for them. */
  readonly entries: readonly CheckEntry[];
  /** Returns the current limit for the call that reserved them. */
  readonly currentLimit: () => CompiledLimit;
  limit: CompiledLimit;
  decision: StoreDecision;
  /** In milliseconds of the monotonic clock, as is `usableAt`. */
  readonly reservedAt: number;
  usableAt: number;
}

/** Orders units of one store by its clock. Units without a ticket can be used immediately. */
export function compareUnits(one: TimedUnits, other: TimedUnits): number {
  const [first, second] = [one.decision, other.decision];
  if (first.source !== second.source || one.limit !== other.limit) return one.usableAt - other.usableAt;
  return (first.ticket ?? 0) - (second.ticket ?? 0);
}

/** Orders units by the time from which they can be used; those of one queue by its clock. */
export function compareTimes(one: TimedUnits, other: TimedUnits): number {
  const haveTickets = one.decision.ticket !== undefined && other.decision.ticket !== undefined;
  return haveTickets ? compareUnits(one, other) : one.usableAt - other.usableAt;
}

/**
 * The time between units that leave a queue and those before them, in milliseconds; `-Infinity` without a queue, and for units that bypass
 * it.
 */
export function spacingMs({ limit: { algorithm, parameters }, units, decision }: ReservedUnits): number {
  if (algorithm.queue === undefined || decision.source === 'list') return -Infinity;
  return (units * algorithm.queue.spacing(parameters)) / 1000;
}

/** Returns true if the counter was restarted since the units were reserved. */
export function isForgotten({ limit, currentLimit }: ReservedUnits): boolean {
  return limit.id !== currentLimit().id;
}

/** Converts sorted units to the current limits. Returns some whose time has changed; `undefined` if all stay the same. */
export function convertUnits(reserved: readonly ReservedUnits[], now: number): ReservedUnits | undefined {
  let converted: ReservedUnits | undefined;
  for (const together of simultaneous(reserved)) {
    for (const [index, units] of together.entries()) {
      if (convert(units, (index + 1) / together.length, now)) converted = units;
    }
  }
  return converted;
}

/** Groups sorted units that can be used at the same time. */
function simultaneous(reserved: readonly ReservedUnits[]): ReservedUnits[][] {
  const groups: ReservedUnits[][] = [];
  for (const units of reserved) {
    const last = groups.at(-1);
    if (last !== undefined && compareUnits(last[0]!, units) === 0) last.push(units);
    else groups.push([units]);
  }
  return groups;
}

/** Converts units. `share` of the units that could be used together with these can be used no later than these. */
function convert(units: ReservedUnits, share: number, now: number): boolean {
  const after = units.currentLimit();
  const { limit: before, decision } = units;
  if (after === before) return false;
  units.limit = after;
  const { algorithm } = after;
  const tickets = algorithm.reservation ?? algorithm.queue;
  if (decision.ticket === undefined || decision.chargedAt === undefined || tickets === undefined) return false;
  const storeNow = decision.chargedAt + (now - units.reservedAt) * 1000;
  // A debt under the former quota stays a debt.
  const from =
    after.carry === undefined
      ? before.parameters
      : (algorithm.withQuota?.(before.parameters, after.quota) ?? before.parameters);
  const { ticket, time } = tickets.ticketUnder(from, after.parameters, decision.ticket, storeNow, share);
  units.decision = { ...decision, ticket };
  units.usableAt = now + (time - storeNow) / 1000;
  return true;
}
