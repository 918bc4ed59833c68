import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import type { StoreDecision } from '../../storage/stores/store.js';
import type { WaitingCall } from './waiting-call.js';

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

/** The group with the earliest first units; `undefined` if no group has any. */
export function earliestOf<Group>(
  groups: Iterable<Group>,
  firstOf: (group: Group) => TimedUnits | undefined,
): Group | undefined {
  let earliest: Group | undefined;
  let earliestUnits: TimedUnits | undefined;
  for (const group of groups) {
    const first = firstOf(group);
    if (first === undefined || (earliestUnits !== undefined && compareTimes(first, earliestUnits) >= 0)) continue;
    earliest = group;
    earliestUnits = first;
  }
  return earliest;
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
function isForgotten({ limit, currentLimit }: ReservedUnits): boolean {
  return limit.id !== currentLimit().id;
}

/** Converts sorted units to the current limits. Returns some whose time has changed; `undefined` if all stay the same. */
function convertUnits(reserved: readonly ReservedUnits[], now: number): ReservedUnits | undefined {
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

/** Calls of equal cost and their units. The first call uses the first units, even if another call reserved them. */
export class ReservedGroup {
  readonly calls = new Set<WaitingCall>();
  /** The units, earliest first. */
  private reserved: ReservedUnits[] = [];
  /** The calls that have left since the last `compact`, and the iterator over the next ones. */
  private released = 0;
  private inOrder: IterableIterator<WaitingCall> | undefined;

  get first(): ReservedUnits | undefined {
    return this.reserved[this.released];
  }

  get last(): ReservedUnits | undefined {
    return this.reserved.at(-1);
  }

  /** The number of units that its calls have. */
  get units(): number {
    return this.calls.size * (this.last?.units ?? 0);
  }

  /** True if the counter of some of the units was restarted. */
  get isForgotten(): boolean {
    return this.reserved.some(isForgotten);
  }

  /** True if some units were reserved under a limit that has been replaced. */
  get hasOtherLimit(): boolean {
    return this.reserved.some(({ limit, currentLimit }) => limit !== currentLimit());
  }

  add(units: ReservedUnits): void {
    let index = this.reserved.length;
    while (index > 0 && compareUnits(this.reserved[index - 1]!, units) > 0) index--;
    this.reserved.splice(index, 0, units);
  }

  /** Removes and returns the first call. Its units stay until `compact`, so that many can leave in one pass. */
  releaseFirst(): WaitingCall | undefined {
    this.inOrder ??= this.calls.values();
    const { value: call } = this.inOrder.next() as IteratorResult<WaitingCall, undefined>;
    if (call === undefined) return undefined;
    this.calls.delete(call);
    this.released++;
    return call;
  }

  /** Removes the units of released calls. */
  compact(): void {
    this.reserved.splice(0, this.released);
    this.released = 0;
    this.inOrder = undefined;
  }

  /** Removes and returns the units that exceed the number of calls, which are the last ones. */
  takeUnclaimed(): ReservedUnits[] {
    return this.reserved.splice(this.calls.size);
  }

  /** Converts the units to the current limits, and rejects calls whose units come too late. Returns converted units. */
  convert(now: number): ReservedUnits | undefined {
    const converted = convertUnits(this.reserved, now);
    this.reserved.sort(compareUnits);
    let index = 0;
    for (const call of this.calls) {
      const units = this.reserved[index];
      if (units !== undefined) call.postpone({ ...units, index: 0 }, units.usableAt - now);
      if (!call.isSettled) index++;
    }
    return converted;
  }

  /** All units, each with its call. */
  pairs(): { units: ReservedUnits; call: WaitingCall | undefined }[] {
    const calls = [...this.calls];
    return this.reserved.map((units, index) => ({ units, call: calls[index] }));
  }
}
