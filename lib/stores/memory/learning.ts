import type { Lesson } from '../lesson.js';
import { BoundedMap, Kept } from '../../util/bounded-map.js';
import type { View } from './counter-view.js';
import { blockFor } from './block.js';

/** Microseconds after which an instance that tells nothing has gone, or its calls have arrived; and so have those of a window that is over. */
const FLIGHT = 60_000_000;
/** More instances than these are not noted. */
const MOST_FLIGHTS = 256;
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
  flights: Flight[] = [];
}

/** Brings what upstreams say into counters. It only ever tightens; `lua/driver/learn.lua` does the same. */
export class Learning {
  private readonly notes = new BoundedMap<Note>(MAX_NOTES, MAX_BYTES);

  /** Says whether the counter was changed. */
  learn(key: string, view: View, lesson: Lesson): boolean {
    const { limit, state } = view;
    const { algorithm, parameters } = limit;
    const { now } = state;
    const { remaining, window: tag = NO_WINDOW } = lesson;
    const [reset, age, block] = [micros(lesson.resetAfterMs), micros(lesson.ageMs)!, micros(lesson.blockMs)];
    const note = this.noteOf(key, now);
    const flying = noteFlight(note, lesson, now);
    let blockUntil = block === undefined ? 0 : now + block;
    let changed = false;
    if (remaining !== undefined && !isLate(note, reset, age, tag, now)) {
      const isWindowed = tag !== NO_WINDOW && reset !== undefined;
      if (isWindowed) {
        // What is told in whole seconds is narrowed down by each answer.
        const runs = note.tag === tag && note.windowEnd > now;
        note.windowEnd = runs ? Math.min(note.windowEnd, now + reset) : now + reset;
        note.tag = tag;
      }
      const room = Math.max(0, remaining - flying);
      const excess = algorithm.holding === undefined ? algorithm.remaining(parameters, state) - room : 0;
      if (isWindowed && remaining === 0) {
        // A block ends with the upstream's window, and units that were charged would end with the limit's own.
        blockUntil = Math.max(blockUntil, note.windowEnd);
      } else if (excess > 0) {
        algorithm.take(parameters, state, excess);
        changed = true;
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

  clear(): void {
    this.notes.clear();
  }

  private noteOf(key: string, now: number): Note {
    const note = this.notes.get(key) ?? new Note(key);
    if (now - note.windowEnd >= FLIGHT) {
      note.tag = NO_WINDOW;
      note.windowEnd = 0;
    }
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

/** Notes what an instance has in flight, and tells how much all of them have. */
function noteFlight(note: Note, { instance, inFlight: units }: Lesson, now: number): number {
  note.flights = note.flights.filter((flight) => flight.instance !== instance);
  if (units > 0) note.flights.push({ instance, units, told: now });
  note.flights = note.flights.slice(-MOST_FLIGHTS);
  return note.flights.reduce((sum, flight) => sum + flight.units, 0);
}

/** Whether an answer may be of a window that is over. */
function isLate(note: Note, reset: number | undefined, age: number, tag: number, now: number): boolean {
  if (reset !== undefined && reset <= age) return true;
  return tag !== NO_WINDOW && note.tag === tag && note.windowEnd <= now && now - age < note.windowEnd;
}

function micros(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 1000);
}
