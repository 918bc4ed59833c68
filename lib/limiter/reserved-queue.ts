import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { StoreDecision } from '../stores/store.js';
import { LongTimeout } from '../util/long-timeout.js';
import type { Waiter } from './waiter.js';

/** A timer is seldom later. If one is, those behind leave later too: they do not make up for it all at once. */
const MAX_LATE_MS = 10;

/** Units that are taken from the future. */
export interface ReservedUnits {
  readonly units: number;
  /** The limit that holds now for the one who asked for it. */
  readonly limitNow: () => CompiledLimit;
  /** The limit by which it is where it is. */
  limit: CompiledLimit;
  decision: StoreDecision;
  /** When it was told, and from when on its units may be used, in milliseconds of the monotonic clock. */
  readonly reservedAt: number;
  usableAt: number;
}

/** Those who wait for as much as each other, and as many places: the first of these is the first one's, whoever asked for it. */
interface Group {
  readonly waiters: Set<Waiter>;
  /** The earliest first. */
  reserved: ReservedUnits[];
}

/**
 * Those whose units are taken from the future: each is let go when the time of a place has come. If one gives up, those behind
 * move up, and the last place is given back: nobody else has reserved units behind it, as far as this process knows.
 */
export class ReservedQueue {
  /** By what they wait for; a waiter that cannot wait for its turn among them is a group of its own. */
  private readonly groups = new Map<number | Waiter, Group>();
  /** Places that nobody here waits for. */
  private spare: ReservedUnits[] = [];
  private alarm: LongTimeout | undefined;
  /** When the last units were to leave, or did if that was much later. */
  private left = -Infinity;
  private tidying = false;

  constructor(
    /** Gives places back, the last one first. */
    private readonly giveBack: (reserved: readonly ReservedUnits[]) => void,
    private readonly onEmpty: () => void,
  ) {}

  get isEmpty(): boolean {
    return this.groups.size === 0 && this.spare.length === 0;
  }

  /** Whether counters began anew for the limit that holds now. */
  get isForgotten(): boolean {
    return [...this.groups.values()].some(({ reserved }) =>
      reserved.some(({ limit, limitNow }) => limit.id !== limitNow().id),
    );
  }

  /** Adds units that were reserved for a waiter, whether it still waits or not. */
  add(waiter: Waiter, limit: CompiledLimit, decision: StoreDecision): void {
    const reservedAt = performance.now();
    const usableAt = reservedAt + decision.delayMs;
    const units = { units: waiter.cost, limitNow: waiter.limit, limit, decision, reservedAt, usableAt };
    const last = this.groups.get(waiter.cost)?.reserved.at(-1);
    const waitsForTurn =
      waiter.isOver || last === undefined || last.usableAt - reservedAt <= Math.max(waiter.leftMs, decision.delayMs);
    const key = waitsForTurn ? waiter.cost : waiter;
    let group = this.groups.get(key);
    if (group === undefined) this.groups.set(key, (group = { waiters: new Set(), reserved: [] }));
    if (!waiter.isOver) {
      group.waiters.add(waiter);
      waiter.grant();
      waiter.onGivenUp = () => {
        group.waiters.delete(waiter);
        this.tidyLater();
      };
    }
    let index = group.reserved.length;
    while (index > 0 && compare(group.reserved[index - 1]!, units) > 0) index--;
    group.reserved.splice(index, 0, units);
    this.tidyLater();
  }

  /** Moves places to where they are under the limits that hold now, and ends what would be waited for in vain. */
  follow(): ReservedUnits | undefined {
    let moved: ReservedUnits | undefined;
    const now = performance.now();
    for (const { waiters, reserved } of this.groups.values()) {
      for (const together of atOnce(reserved)) {
        for (const [index, units] of together.entries()) {
          if (move(units, (index + 1) / together.length, now)) moved = units;
        }
      }
      reserved.sort(compare);
      let index = 0;
      for (const waiter of waiters) {
        const units = reserved[index];
        if (units !== undefined) waiter.postpone(units.decision, units.usableAt - now);
        if (!waiter.isOver) index++;
      }
    }
    if (moved !== undefined) this.tidyLater();
    return moved;
  }

  /** Takes out all who wait, in the order of their places, and these, the last one first. */
  recall(): { waiters: Waiter[]; reserved: ReservedUnits[] } {
    const all = [...this.groups.values()].flatMap(({ waiters, reserved }) => {
      const inOrder = [...waiters];
      return reserved.map((units, index) => ({ units, waiter: inOrder[index] }));
    });
    all.sort((one, other) => compare(one.units, other.units));
    const reserved = [...all.map(({ units }) => units), ...this.spare].toSorted(compare).toReversed();
    this.groups.clear();
    this.spare = [];
    this.alarm?.clear();
    const waiters = all.flatMap(({ waiter }) => waiter ?? []);
    for (const waiter of waiters) waiter.revoke();
    return { waiters, reserved };
  }

  close(reason: Error): void {
    for (const { waiters } of this.groups.values()) for (const waiter of waiters) waiter.reject(reason);
    this.tidy();
  }

  /** Those who give up in one turn are seen to together. */
  private tidyLater(): void {
    if (this.tidying) return;
    this.tidying = true;
    queueMicrotask(() => this.tidy());
  }

  private tidy(): void {
    this.tidying = false;
    let end: ReservedUnits | undefined;
    for (const [key, group] of this.groups) {
      for (const units of group.reserved.splice(group.waiters.size)) this.spare.push(units);
      const last = group.reserved.at(-1);
      if (last === undefined) this.groups.delete(key);
      else if (end === undefined || compare(end, last) < 0) end = last;
    }
    this.returnSpare(end);
    this.depart();
  }

  /** A place before others of this process would be lost: it is given back once these have gone, if its time has not come. */
  private returnSpare(end: ReservedUnits | undefined): void {
    if (this.spare.length === 0) return;
    const now = performance.now();
    const returns: ReservedUnits[] = [];
    const kept: ReservedUnits[] = [];
    for (const units of this.spare) {
      // A queue keeps places in the middle for others.
      const { queue, holding } = units.limit.algorithm;
      const isLost = end !== undefined && compare(end, units) > 0 && queue === undefined && holding === undefined;
      if (!isLost) returns.push(units);
      else if (units.usableAt > now) kept.push(units);
    }
    this.spare = kept;
    if (returns.length > 0) this.giveBack(returns.toSorted(compare).toReversed());
  }

  private depart(): void {
    this.alarm?.clear();
    const now = performance.now();
    const lines = [...this.groups].map(([key, { waiters, reserved }]) => ({
      key,
      reserved,
      waiters: waiters.values(),
      leave: (waiter: Waiter) => waiters.delete(waiter),
      gone: 0,
    }));
    const first = (line: (typeof lines)[number]) => line.reserved[line.gone];
    const due: { units: ReservedUnits; waiter: Waiter }[] = [];
    let next = Infinity;
    for (;;) {
      let line = lines[0];
      for (const other of lines) {
        const [one, another] = [line && first(line), first(other)];
        if (one === undefined || (another !== undefined && compare(another, one) < 0)) line = other;
      }
      const units = line && first(line);
      if (line === undefined || units === undefined) break;
      next = Math.max(units.usableAt, this.left + apartMs(units));
      if (next > now) break;
      const { value: waiter } = line.waiters.next();
      if (waiter === undefined) break;
      line.leave(waiter);
      line.gone++;
      due.push({ units, waiter });
      this.left = Math.max(next, now - MAX_LATE_MS);
    }
    for (const { key, reserved, gone } of lines) {
      reserved.splice(0, gone);
      if (reserved.length === 0) this.groups.delete(key);
    }
    for (const { units, waiter } of due) waiter.release(units.decision);
    if (this.groups.size > 0) this.alarm = new LongTimeout(Math.max(0, next - now), () => this.tidy());
    else if (this.isEmpty) this.onEmpty();
    else this.tidyLater();
  }
}

/** How far from those before them units leave a queue. */
function apartMs({ limit: { algorithm, parameters }, units }: ReservedUnits): number {
  return algorithm.queue === undefined ? -Infinity : (units * algorithm.queue.spacing(parameters)) / 1000;
}

/** Places of one store are in the order of its clock; what has none is there at once. */
function compare(one: ReservedUnits, other: ReservedUnits): number {
  const [first, second] = [one.decision, other.decision];
  if (first.source !== second.source || one.limit !== other.limit) return one.usableAt - other.usableAt;
  return (first.ticket ?? 0) - (second.ticket ?? 0);
}

/** Places by when they are there. */
function atOnce(reserved: readonly ReservedUnits[]): ReservedUnits[][] {
  const groups: ReservedUnits[][] = [];
  for (const units of reserved) {
    const last = groups.at(-1);
    if (last !== undefined && compare(last[0]!, units) === 0) last.push(units);
    else groups.push([units]);
  }
  return groups;
}

/** Where a place is under the limit that holds now. `share` of those that were to be there together with it are no later. */
function move(units: ReservedUnits, share: number, now: number): boolean {
  const after = units.limitNow();
  const { limit: before, decision } = units;
  if (after === before) return false;
  units.limit = after;
  const { algorithm } = after;
  const tickets = algorithm.reservation ?? algorithm.queue;
  if (decision.ticket === undefined || decision.chargedAt === undefined || tickets === undefined) return false;
  const storeNow = decision.chargedAt + (now - units.reservedAt) * 1000;
  // What was owed under another quota is owed still.
  const from =
    after.carry === undefined
      ? before.parameters
      : (algorithm.withQuota?.(before.parameters, after.quota) ?? before.parameters);
  const moved = tickets.ticketUnder(from, after.parameters, decision.ticket, storeNow, share);
  units.decision = { ...decision, ticket: moved.ticket };
  units.usableAt = now + (moved.time - storeNow) / 1000;
  return true;
}
