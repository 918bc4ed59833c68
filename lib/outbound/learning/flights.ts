import { randomInt } from 'node:crypto';
import { type Counter, lineageId } from '../../limits/counter.js';
import type { Lesson } from '../../stores/lesson.js';
import type { Store } from '../../stores/store.js';

/** So much more than is in flight is told: calls of others are on their way as ours are, and nobody tells of them. */
const MARGIN = 1 / 4;
const LEAST_MARGIN = 2;
/** Random numbers of Node are below this. */
const INSTANCES = 2 ** 48 - 1;

/** The units of a counter that are in flight. */
interface Flight {
  units: number;
  /** Whether the store is about to be told. */
  isTelling: boolean;
}

/** What this process has in flight: units that were charged for calls that the upstream has not answered yet. */
export class Flights {
  private readonly flights = new Map<string, Flight>();
  private readonly instance = randomInt(INSTANCES);
  private readonly pending = new Set<Promise<void>>();

  constructor(
    private readonly store: Store,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** A call goes out. The store is told once a turn of the event loop. */
  begin(counter: Counter, units: number): void {
    const key = lineageId(counter.limit, counter.identity);
    let flight = this.flights.get(key);
    if (flight === undefined) this.flights.set(key, (flight = { units: 0, isTelling: false }));
    flight.units += units;
    if (flight.isTelling) return;
    flight.isTelling = true;
    queueMicrotask(() => {
      if (flight.isTelling) void this.tell(counter, flight, { ageMs: 0 });
    });
  }

  /** The store is about to be asked for a counter: first it brings what it knows of the upstream into it. Never rejects. */
  refresh(counter: Counter): Promise<void> {
    const flight = this.flights.get(lineageId(counter.limit, counter.identity)) ?? { units: 0, isTelling: false };
    return this.tell(counter, flight, { ageMs: 0 });
  }

  /** A call was answered, or failed. The store is told, with what the answer said. */
  end(counter: Counter, units: number, lesson: Omit<Lesson, 'inFlight' | 'instance'>): void {
    const key = lineageId(counter.limit, counter.identity);
    const flight = this.flights.get(key) ?? { units: 0, isTelling: false };
    flight.units = Math.max(0, flight.units - units);
    if (flight.units === 0) this.flights.delete(key);
    const saysNothing = lesson.remaining === undefined && lesson.blockMs === undefined;
    if (units > 0 || !saysNothing) void this.tell(counter, flight, lesson);
  }

  /** Resolves when the store has been told all that is on its way. */
  async settled(): Promise<void> {
    await Promise.all(this.pending);
  }

  private tell(counter: Counter, flight: Flight, lesson: Omit<Lesson, 'inFlight' | 'instance'>): Promise<void> {
    flight.isTelling = false;
    const { instance } = this;
    const told: Promise<void> = this.ask(counter, {
      ...lesson,
      inFlight: withMargin(flight.units),
      instance,
    })
      .catch(this.onError)
      .finally(() => this.pending.delete(told));
    this.pending.add(told);
    return told;
  }

  /** A store of the app may know nothing of it, or throw at once. */
  private async ask(counter: Counter, lesson: Lesson): Promise<void> {
    await this.store.learn?.(counter, lesson);
  }
}

function withMargin(units: number): number {
  return units === 0 ? 0 : units + Math.max(LEAST_MARGIN, Math.ceil(units * MARGIN));
}
