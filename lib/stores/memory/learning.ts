import { issuesTickets } from '../../algorithms/algorithm.js';
import type { Lesson } from '../lesson.js';
import { BoundedMap, Kept } from '../../util/bounded-map.js';
import type { View } from './counter-view.js';
import { blockFor } from './block.js';

/** Microseconds after which an instance that tells nothing has gone, or its calls have arrived; and so have those of a window that is over. */
const FLIGHT = 60_000_000;
/** More instances than these are not noted. */
const MOST_FLIGHTS = 256;
/** What is told in whole seconds was less than this one shorter. */
const SECOND = 1_000_000;
/** One unit of so many is left to consumers of whom nobody tells: they may ask while the last calls of a window are on their way. */
const LEFT_TO_OTHERS = 50;
/** Where less than this part of a window is left, and nobody has told of it for a second, one ask at a time finds out. */
const FEW = 4;
/** How many notes are kept, and how many bytes they may take; the least recently used goes first. */
const MAX_NOTES = 10_000;
const MAX_BYTES = 10_000_000;
const NOTE_BYTES = 300;
const NO_WINDOW = -1;

interface Flight {
  readonly instance: number;
  readonly units: number;
  readonly told: number;
}

/** What is known of an upstream's limit besides the counter: the twin of what the script stores in a key of its own. */
class Note extends Kept {
  tag = NO_WINDOW;
  windowEnd = 0;
  /** The least that was left in the window. */
  least = 0;
  /** How many units were charged for it, and when. */
  charged = 0;
  chargedAt = 0;
  /** The window ends after this time for sure. */
  endsAfter = 0;
  /** The most that was left in it. */
  most = 0;
  /** When an answer told of it last, and when somebody was let through to find out. */
  toldAt = 0;
  probedAt = 0;
  flights: Flight[] = [];
}

/**
 * Brings what upstreams say into counters. It only ever tightens, and gives back what it charged for calls in flight once less is;
 * `lua/driver/learn.lua` does the same.
 */
export class Learning {
  private readonly notes = new BoundedMap<Note>(MAX_NOTES, MAX_BYTES);

  /** Says whether the counter was changed. */
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
    let told = remaining !== undefined && !isLate(note, reset, age, tag, now) ? remaining : undefined;
    if (told !== undefined && tag !== NO_WINDOW && reset !== undefined) {
      followWindow(note, told, reset, age, tag, now);
      told = undefined;
    }
    const before = algorithm.remaining(parameters, state);
    // What was charged for the upstream's window is charged anew, as is right by now. Places in a queue have been told, and stay.
    if (note.charged > 0 && !issuesTickets(algorithm)) {
      algorithm.give(parameters, state, note.charged, undefined, note.chargedAt);
      changed = true;
    }
    note.charged = 0;
    const runs = note.windowEnd > now;
    if (runs && note.least === 0) {
      // A block ends with the upstream's window, and units that were charged would end with the limit's own.
      blockUntil = Math.max(blockUntil, note.windowEnd);
    } else if ((runs || told !== undefined) && algorithm.holding === undefined) {
      const left = algorithm.remaining(parameters, state);
      let room = Math.max(0, (told ?? roomOf(note)) - flying);
      if (told === undefined && isStale(note, now)) {
        const probes = asking > 0 && asking <= left && now - note.probedAt >= SECOND;
        if (probes) note.probedAt = now;
        room = Math.min(room, probes ? asking : before);
      }
      const excess = Math.max(0, left - room);
      if (excess > 0) {
        algorithm.take(parameters, state, excess);
        changed = true;
      }
      if (told === undefined) {
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
      note.windowEnd = note.least = note.charged = note.chargedAt = 0;
      note.endsAfter = note.most = note.toldAt = note.probedAt = 0;
    }
    note.toldAt = Math.min(note.toldAt, now);
    note.probedAt = Math.min(note.probedAt, now);
    note.flights = note.flights
      .filter(({ told }) => now - told < FLIGHT)
      .map((flight) => ({ ...flight, told: Math.min(flight.told, now) }));
    return note;
  }

  private keep(note: Note): void {
    if (note.tag === NO_WINDOW && note.flights.length === 0) this.notes.delete(note);
    else this.notes.put(note, NOTE_BYTES + 2 * note.key.length, false);
  }
}

/** Notes what an instance has in flight, and what it is about to ask for; tells how much all of them have in flight. */
function noteFlight(note: Note, { instance, inFlight, asking = 0 }: Lesson, now: number): number {
  note.flights = note.flights.filter((flight) => flight.instance !== instance);
  const units = inFlight + asking;
  if (units > 0) note.flights.push({ instance, units, told: now });
  note.flights = note.flights.slice(-MOST_FLIGHTS);
  return note.flights.reduce((sum, flight) => sum + flight.units, -asking);
}

/**
 * Takes over what is left of a window, and when it ends: what is told in whole seconds is narrowed down by each answer, and the order
 * of answers does not matter. An answer whose window ends later for sure is of the next one, which has begun: the end was told up to a
 * second late. One whose window ended before for sure says nothing.
 */
function followWindow(note: Note, remaining: number, reset: number, age: number, tag: number, now: number): void {
  const [first, last] = [now - age + reset - SECOND, now + reset];
  const runs = note.tag === tag && note.windowEnd > now;
  if (runs && last <= note.endsAfter) return;
  const isSame = runs && first < note.windowEnd;
  note.tag = tag;
  note.windowEnd = isSame ? Math.min(note.windowEnd, last) : last;
  note.endsAfter = isSame ? Math.max(note.endsAfter, first) : first;
  note.least = isSame ? Math.min(note.least, remaining) : remaining;
  note.most = isSame ? Math.max(note.most, remaining) : remaining;
  note.toldAt = now;
}

/** Whether others may have taken what seems to be left. */
function isStale({ least, most, toldAt }: Note, now: number): boolean {
  return least * FEW < most && now - toldAt > SECOND;
}

/** What is left in the window, for calls that are on their way and others. While there are none, all of it may be asked for. */
function roomOf({ least, most, flights }: Note): number {
  return flights.length === 0 ? least : least - Math.floor(most / LEFT_TO_OTHERS);
}

/** Whether an answer may be of a window that is over. */
function isLate(note: Note, reset: number | undefined, age: number, tag: number, now: number): boolean {
  if (reset !== undefined && reset <= age) return true;
  return tag !== NO_WINDOW && note.tag === tag && note.windowEnd <= now && now - age < note.windowEnd;
}

function micros(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 1000);
}
