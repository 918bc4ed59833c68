import { issuesTickets } from '../../../engine/algorithms/algorithm.js';
import type { Lesson } from '../lesson.js';
import { BoundedMap, Kept } from '../../../engine/util/bounded-map.js';
import type { View } from './counter-view.js';
import { blockFor } from './block.js';

/**
 * In microseconds: an instance that has not reported for this long is gone, or its calls have arrived; so have those of a
 * finished window.
 */
const FLIGHT = 60_000_000;
/** The most instances to note. */
const MOST_FLIGHTS = 256;
/** Times reported in whole seconds were rounded up by less than this. */
const SECOND = 1_000_000;
/**
 * One unit in this many is left to other consumers, which nobody reports: they may ask while a window's last calls are in flight.
 */
const LEFT_TO_OTHERS = 50;
/** If less than this part of a window is left, and there was no report for a second, one call at a time finds out. */
const FEW = 4;
/** How many notes are kept, and how many bytes they may take; the least recently used is evicted first. */
const MAX_NOTES = 10_000;
const MAX_BYTES = 10_000_000;
const NOTE_BYTES = 300;
const NO_WINDOW = -1;

interface Flight {
  readonly instance: number;
  readonly units: number;
  readonly reportedAt: number;
}

/** What is known about an upstream's limit besides the counter: the twin of what the script stores in a key of its own. */
class Note extends Kept {
  tag = NO_WINDOW;
  windowEnd = 0;
  /** The least that was left in the window. */
  least = 0;
  /** How many units were charged for it, and when. */
  charged = 0;
  chargedAt = 0;
  /** The window surely ends after this time. */
  endsAfter = 0;
  /** The most that was left in it. */
  most = 0;
  /** When an answer last reported it, and when a call was last let through to find out. */
  reportedAt = 0;
  probedAt = 0;
  /** The quota of the upstream's windows; 0 if it is unknown. */
  quota = 0;
  flights: Flight[] = [];
}

/**
 * Brings upstreams' reports into counters. It only ever tightens them, and gives back what it charged for calls in flight once
 * fewer are; `lua/driver/learn.lua` does the same.
 */
export class Learning {
  private readonly notes = new BoundedMap<Note>(MAX_NOTES, MAX_BYTES);

  /** Returns whether the counter was changed. */
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
    // Charges again what was charged for the upstream's window, by what is known now. Places in a queue are already promised, and
    // stay.
    if (note.charged > 0 && !issuesTickets(algorithm)) {
      algorithm.give(parameters, state, note.charged, undefined, note.chargedAt);
      changed = true;
    }
    note.charged = 0;
    const runs = note.windowEnd > now;
    if (runs && note.least === 0) {
      // A block ends with the upstream's window, while charged units would end with the limit's own.
      blockUntil = Math.max(blockUntil, note.windowEnd);
    } else if ((runs || reported !== undefined || note.quota > 0) && algorithm.leases === undefined) {
      const left = algorithm.remaining(parameters, state);
      // The next window has at most the quota; the first answer reports which one that is.
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
      // Charged units are still given back.
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

/** Records what an instance has in flight and is about to ask for; returns the total of all instances. */
function noteFlight(note: Note, { instance, inFlight, asking = 0 }: Lesson, now: number): number {
  note.flights = note.flights.filter((flight) => flight.instance !== instance);
  const units = inFlight + asking;
  if (units > 0) note.flights.push({ instance, units, reportedAt: now });
  note.flights = note.flights.slice(-MOST_FLIGHTS);
  return note.flights.reduce((sum, flight) => sum + flight.units, -asking);
}

/**
 * Takes over what is left of a window, and when it ends. Each answer narrows down a time reported in whole seconds, and the order
 * of answers does not matter. An answer whose window surely ends later is about the next one, which has begun: the end was
 * reported up to a second late. One whose window surely ended before is ignored.
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

/** Whether others may have taken what seems to be left. */
function isStale({ least, most, reportedAt }: Note, now: number): boolean {
  return least * FEW < most && now - reportedAt > SECOND;
}

/** What is left in the window for calls in flight and others. While there are none, all of it may be asked for. */
function roomOf({ least, most, flights }: Note): number {
  return flights.length === 0 ? least : least - Math.floor(most / LEFT_TO_OTHERS);
}

/** Whether an answer may be about a window that is over. */
function isLate(note: Note, reset: number | undefined, age: number, tag: number, now: number): boolean {
  if (reset !== undefined && reset <= age) return true;
  return tag !== NO_WINDOW && note.tag === tag && note.windowEnd <= now && now - age < note.windowEnd;
}

function micros(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 1000);
}
