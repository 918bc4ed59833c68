import { issuesTickets } from '../../../engine/algorithms/algorithm.js';
import type { Lesson } from '../lesson.js';
import { BoundedMap, Kept } from '../../../engine/util/bounded-maps.js';
import type { View } from './counter-view.js';
import { blockFor } from './block.js';

/**
 * In microseconds. If an instance has not reported for this long, it has ended or its calls have arrived. The same goes for a window that
 * is over.
 */
const FLIGHT = 60_000_000;
/** Maximum number of instances to track. */
const MOST_FLIGHTS = 256;
/** Times in whole seconds were rounded up by less than this. */
const SECOND = 1_000_000;
/**
 * One unit in this many is left for other consumers, which nobody reports: they may call while the last calls of a window are in flight.
 */
const LEFT_TO_OTHERS = 50;
/** If less than this part of a window is left, and there was no report for a second, one call at a time is let through to find out. */
const FEW = 4;
/** Maximum number of notes to keep, and the bytes that they may take; the least recently used is evicted first. */
const MAX_NOTES = 10_000;
const MAX_BYTES = 10_000_000;
const NOTE_BYTES = 300;
const NO_WINDOW = -1;

interface Flight {
  readonly instance: number;
  readonly units: number;
  readonly reportedAt: number;
}

/** The known state of an upstream's limit, separate from the counter. The script stores the same in a key of its own. */
class Note extends Kept {
  tag = NO_WINDOW;
  windowEnd = 0;
  /** The fewest units that were reported as left in the window. */
  least = 0;
  /** The units that were charged for the window, and when. */
  charged = 0;
  chargedAt = 0;
  /** The latest time until which the window surely lasts. */
  endsAfter = 0;
  /** The maximum number of units that was reported as left in the window. */
  most = 0;
  /** When a response last reported the window, and when a call was last let through to find out. */
  reportedAt = 0;
  probedAt = 0;
  /** The quota of the upstream's windows; 0 if it is unknown. */
  quota = 0;
  flights: Flight[] = [];
}

/**
 * Applies the state that an upstream reports to counters. It only makes them stricter, and refunds its charges for calls in flight once
 * there are fewer. `lua/driver/learn.lua` does the same.
 */
export class Learning {
  private readonly notes = new BoundedMap<Note>(MAX_NOTES, MAX_BYTES);

  /** Returns true if the counter was changed. */
  learn(key: string, view: View, lesson: Lesson): boolean {
    const { limit, state } = view;
    const { algorithm, parameters } = limit;
    const { now } = state;
    const { remaining, window: tag = NO_WINDOW, asking = 0 } = lesson;
    const [reset, age, block] = [micros(lesson.resetAfterMs), micros(lesson.ageMs)!, micros(lesson.blockMs)];
    const note = this.noteOf(key, now);
    const flying = noteFlight(note, lesson, now);
    let blockUntil = block === undefined ? 0 : now + block;
    let changed = false;
    let reported = remaining !== undefined && !isLate(note, reset, age, tag, now) ? remaining : undefined;
    if (reported !== undefined && tag !== NO_WINDOW && reset !== undefined) {
      followWindow(note, lesson, reported, reset, age, now);
      reported = undefined;
    }
    const before = algorithm.remaining(parameters, state);
    // Replaces the charge for the upstream's window by one that matches the current state. Places in a queue were already promised, so they
    // stay.
    if (note.charged > 0 && !issuesTickets(algorithm)) {
      algorithm.give(parameters, state, note.charged, undefined, note.chargedAt);
      changed = true;
    }
    note.charged = 0;
    const runs = note.windowEnd > now;
    if (runs && note.least === 0) {
      // A block ends with the upstream's window, while charged units would come back with the limit's own window.
      blockUntil = Math.max(blockUntil, note.windowEnd);
    } else if ((runs || reported !== undefined || note.quota > 0) && algorithm.leases === undefined) {
      const left = algorithm.remaining(parameters, state);
      // The next window has at most the quota. The first response reports which window that is.
      let room = Math.max(0, (reported ?? (runs ? roomOf(note) : note.quota)) - flying);
      if (reported === undefined && runs && isStale(note, now)) {
        const probes = asking > 0 && asking <= left && now - note.probedAt >= SECOND;
        if (probes) note.probedAt = now;
        room = Math.min(room, probes ? asking : before);
      }
      const excess = Math.max(0, left - room);
      if (excess > 0) {
        algorithm.take(parameters, state, excess);
        changed = true;
      }
      if (reported === undefined) {
        note.charged = excess;
        note.chargedAt = now;
      }
    }
    if (blockUntil > Math.max(now, view.block?.until ?? 0)) {
      view.block = blockFor(blockUntil - now, now, view.block ?? view.past);
      view.past = undefined;
      changed = true;
    }
    this.keep(note);
    return changed;
  }

  forget(key: string): void {
    const note = this.notes.get(key);
    if (note !== undefined) this.notes.delete(note);
  }

  clear(): void {
    this.notes.clear();
  }

  private noteOf(key: string, now: number): Note {
    const note = this.notes.get(key) ?? new Note(key);
    if (now - note.windowEnd >= FLIGHT) {
      note.tag = NO_WINDOW;
      // Charged units are still refunded.
      note.windowEnd = note.least = 0;
      note.endsAfter = note.most = note.reportedAt = note.probedAt = note.quota = 0;
    }
    note.reportedAt = Math.min(note.reportedAt, now);
    note.probedAt = Math.min(note.probedAt, now);
    note.flights = note.flights
      .filter(({ reportedAt }) => now - reportedAt < FLIGHT)
      .map((flight) => ({ ...flight, reportedAt: Math.min(flight.reportedAt, now) }));
    return note;
  }

  private keep(note: Note): void {
    if (note.tag === NO_WINDOW && note.flights.length === 0 && note.charged === 0) this.notes.delete(note);
    else this.notes.put(note, NOTE_BYTES + 2 * note.key.length, false);
  }
}

/** Records the units that an instance has in flight and is about to request; returns the total of all instances. */
function noteFlight(note: Note, { instance, inFlight, asking = 0 }: Lesson, now: number): number {
  note.flights = note.flights.filter((flight) => flight.instance !== instance);
  const units = inFlight + asking;
  if (units > 0) note.flights.push({ instance, units, reportedAt: now });
  note.flights = note.flights.slice(-MOST_FLIGHTS);
  return note.flights.reduce((sum, flight) => sum + flight.units, -asking);
}

/**
 * Updates the units left in a window and its end. Each response narrows down an end reported in whole seconds, in any order of the
 * responses. A response whose window surely ends later describes the next window, which has begun: the end was reported up to a second
 * late. A response whose window surely ended before is ignored.
 */
function followWindow(
  note: Note,
  { window: tag = NO_WINDOW, quota = 0 }: Lesson,
  remaining: number,
  reset: number,
  age: number,
  now: number,
): void {
  const [first, last] = [now - age + reset - SECOND, now + reset];
  const runs = note.tag === tag && note.windowEnd > now;
  if (runs && last <= note.endsAfter) return;
  const isSame = runs && first < note.windowEnd;
  note.tag = tag;
  note.quota = quota > 0 ? Math.max(quota, remaining) : 0;
  note.windowEnd = isSame ? Math.min(note.windowEnd, last) : last;
  note.endsAfter = isSame ? Math.max(note.endsAfter, first) : first;
  note.least = isSame ? Math.min(note.least, remaining) : remaining;
  note.most = isSame ? Math.max(note.most, remaining) : remaining;
  note.reportedAt = now;
}

/** Returns true if others may have taken the units that seem to be left. */
function isStale({ least, most, reportedAt }: Note, now: number): boolean {
  return least * FEW < most && now - reportedAt > SECOND;
}

/** The units of the window that are left for calls in flight and others. While no calls are in flight, all of it is available. */
function roomOf({ least, most, flights }: Note): number {
  return flights.length === 0 ? least : least - Math.floor(most / LEFT_TO_OTHERS);
}

/** Returns true if a response may describe a window that is over. */
function isLate(note: Note, reset: number | undefined, age: number, tag: number, now: number): boolean {
  if (reset !== undefined && reset <= age) return true;
  return tag !== NO_WINDOW && note.tag === tag && note.windowEnd <= now && now - age < note.windowEnd;
}

function micros(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 1000);
}
