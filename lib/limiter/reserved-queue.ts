import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { StoreDecision } from '../stores/store.js';
import { Alarm } from '../util/long-timeout.js';
import type { Waiter } from './waiter.js';

/** A timer is seldom later. If one is, those behind leave later too: they do not make up for it all at once. */
const MAX_LATE_MS = 10;

/** Units that are taken from the future. */
export interface Place {
  readonly units: number;
  /** The limit that holds now for the one who asked for it. */
  readonly limitNow: () => CompiledLimit;
  /** The limit by which it is where it is. */
  limit: CompiledLimit;
  decision: StoreDecision;
  /** When it was told, and from when on its units may be used, in milliseconds of the monotonic clock. */
  readonly since: number;
  at: number;
}

/** Those who wait for as much as each other, and as many places: the first of these is the first one's, whoever asked for it. */
interface Group {
  readonly waiters: Set<Waiter>;
  /** The earliest first. */
  places: Place[];
}

/**
 * Those whose units are taken from the future: each is let go when the time of a place has come. If one gives up, those behind
 * move up, and the last place is given back: nobody else has reserved units behind it, as far as this process knows.
 */
export class Departures {
  /** By what they wait for; a waiter that cannot wait for its turn among them is a group of its own. */
  private readonly groups = new Map<number | Waiter, Group>();
  /** Places that nobody here waits for. */
  private spare: Place[] = [];
  private alarm: Alarm | undefined;
  /** When the last units were to leave, or did if that was much later. */
  private left = -Infinity;
  private tidying = false;

  constructor(
    /** Gives places back, the last one first. */
    private readonly giveBack: (places: readonly Place[]) => void,
    private readonly onEmpty: () => void,
  ) {}

  get isEmpty(): boolean {
    return this.groups.size === 0 && this.spare.length === 0;
  }

  /** Whether counters began anew for the limit that holds now. */
  get isForgotten(): boolean {
    return [...this.groups.values()].some(({ places }) =>
      places.some(({ limit, limitNow }) => limit.id !== limitNow().id),
    );
  }

  /** A place that was asked for one who waits, or did. */
  add(waiter: Waiter, limit: CompiledLimit, decision: StoreDecision): void {
    const since = performance.now();
    const place = { units: waiter.cost, limitNow: waiter.limit, limit, decision, since, at: since + decision.delayMs };
    const last = this.groups.get(waiter.cost)?.places.at(-1);
    const waitsForTurn =
      waiter.isOver || last === undefined || last.at - since <= Math.max(waiter.leftMs, decision.delayMs);
    const key = waitsForTurn ? waiter.cost : waiter;
    let group = this.groups.get(key);
    if (group === undefined) this.groups.set(key, (group = { waiters: new Set(), places: [] }));
    if (!waiter.isOver) {
      group.waiters.add(waiter);
      waiter.grant();
      waiter.onGivenUp = () => {
        group.waiters.delete(waiter);
        this.tidyLater();
      };
    }
    let index = group.places.length;
    while (index > 0 && compare(group.places[index - 1]!, place) > 0) index--;
    group.places.splice(index, 0, place);
    this.tidyLater();
  }

  /** Moves places to where they are under the limits that hold now, and ends what would be waited for in vain. */
  follow(): Place | undefined {
    let moved: Place | undefined;
    const now = performance.now();
    for (const { waiters, places } of this.groups.values()) {
      for (const together of atOnce(places)) {
        for (const [index, place] of together.entries()) {
          if (move(place, (index + 1) / together.length, now)) moved = place;
        }
      }
      places.sort(compare);
      let index = 0;
      for (const waiter of waiters) {
        const place = places[index];
        if (place !== undefined) waiter.postpone(place.decision, place.at - now);
        if (!waiter.isOver) index++;
      }
    }
    if (moved !== undefined) this.tidyLater();
    return moved;
  }

  /** Takes out all who wait, in the order of their places, and these, the last one first. */
  recall(): { waiters: Waiter[]; places: Place[] } {
    const all = [...this.groups.values()].flatMap(({ waiters, places }) => {
      const inOrder = [...waiters];
      return places.map((place, index) => ({ place, waiter: inOrder[index] }));
    });
    all.sort((one, other) => compare(one.place, other.place));
    const places = [...all.map(({ place }) => place), ...this.spare].toSorted(compare).toReversed();
    this.groups.clear();
    this.spare = [];
    this.alarm?.clear();
    const waiters = all.flatMap(({ waiter }) => waiter ?? []);
    for (const waiter of waiters) waiter.revoke();
    return { waiters, places };
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
    let end: Place | undefined;
    for (const [key, group] of this.groups) {
      for (const place of group.places.splice(group.waiters.size)) this.spare.push(place);
      const last = group.places.at(-1);
      if (last === undefined) this.groups.delete(key);
      else if (end === undefined || compare(end, last) < 0) end = last;
    }
    this.returnSpare(end);
    this.depart();
  }

  /** A place before others of this process would be lost: it is given back once these have gone, if its time has not come. */
  private returnSpare(end: Place | undefined): void {
    if (this.spare.length === 0) return;
    const now = performance.now();
    const returns: Place[] = [];
    const kept: Place[] = [];
    for (const place of this.spare) {
      // A queue keeps places in the middle for others.
      const isLost = end !== undefined && compare(end, place) > 0 && place.limit.algorithm.delay === undefined;
      if (!isLost) returns.push(place);
      else if (place.at > now) kept.push(place);
    }
    this.spare = kept;
    if (returns.length > 0) this.giveBack(returns.toSorted(compare).toReversed());
  }

  private depart(): void {
    this.alarm?.clear();
    const now = performance.now();
    const lines = [...this.groups].map(([key, { waiters, places }]) => ({
      key,
      places,
      waiters: waiters.values(),
      leave: (waiter: Waiter) => waiters.delete(waiter),
      gone: 0,
    }));
    const first = (line: (typeof lines)[number]) => line.places[line.gone];
    const due: { place: Place; waiter: Waiter }[] = [];
    let next = Infinity;
    for (;;) {
      let line = lines[0];
      for (const other of lines) {
        const [one, another] = [line && first(line), first(other)];
        if (one === undefined || (another !== undefined && compare(another, one) < 0)) line = other;
      }
      const place = line && first(line);
      if (line === undefined || place === undefined) break;
      next = Math.max(place.at, this.left + apartMs(place));
      if (next > now) break;
      const { value: waiter } = line.waiters.next();
      if (waiter === undefined) break;
      line.leave(waiter);
      line.gone++;
      due.push({ place, waiter });
      this.left = Math.max(next, now - MAX_LATE_MS);
    }
    for (const { key, places, gone } of lines) {
      places.splice(0, gone);
      if (places.length === 0) this.groups.delete(key);
    }
    for (const { place, waiter } of due) waiter.letGo(place.decision);
    if (this.groups.size > 0) this.alarm = new Alarm(Math.max(0, next - now), () => this.tidy());
    else if (this.isEmpty) this.onEmpty();
    else this.tidyLater();
  }
}

/** How far from those before them units leave a queue. */
function apartMs({ limit: { algorithm, parameters }, units }: Place): number {
  return algorithm.spacing === undefined ? -Infinity : (units * algorithm.spacing(parameters)) / 1000;
}

/** Places of one store are in the order of its clock; what has none is there at once. */
function compare(one: Place, other: Place): number {
  const [first, second] = [one.decision, other.decision];
  if (first.source !== second.source || one.limit !== other.limit) return one.at - other.at;
  return (first.place ?? 0) - (second.place ?? 0);
}

/** Places by when they are there. */
function atOnce(places: readonly Place[]): Place[][] {
  const groups: Place[][] = [];
  for (const place of places) {
    const last = groups.at(-1);
    if (last !== undefined && compare(last[0]!, place) === 0) last.push(place);
    else groups.push([place]);
  }
  return groups;
}

/** Where a place is under the limit that holds now. `share` of those that were to be there together with it are no later. */
function move(place: Place, share: number, now: number): boolean {
  const after = place.limitNow();
  const { limit: before, decision } = place;
  if (after === before) return false;
  place.limit = after;
  const { algorithm } = after;
  if (decision.place === undefined || decision.at === undefined || algorithm.placeUnder === undefined) return false;
  const storeNow = decision.at + (now - place.since) * 1000;
  // What was owed under another quota is owed still.
  const from =
    after.carry === undefined
      ? before.parameters
      : (algorithm.withQuota?.(before.parameters, after.quota) ?? before.parameters);
  const moved = algorithm.placeUnder(from, after.parameters, decision.place, storeNow, share);
  place.decision = { ...decision, place: moved.place };
  place.at = now + (moved.time - storeNow) / 1000;
  return true;
}
