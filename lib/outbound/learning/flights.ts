import { randomInt } from 'node:crypto';
import { type Counter, lineageId } from '../../limits/counter.js';
import type { Lesson, RateLesson } from '../../stores/lesson.js';
import type { Store } from '../../stores/store.js';
import type { LearnedRules } from './learned-rules.js';

/** So much more than is in flight is told: calls of others are on their way as ours are, and nobody tells of them. */
const MARGIN = 1 / 4;
const LEAST_MARGIN = 2;
/** Random numbers of Node are below this. */
const INSTANCES = 2 ** 48 - 1;

/** What an answer says, to be told with what is in flight. */
export type Told = Omit<Lesson, 'inFlight' | 'instance' | 'rate'> & {
  /** What it says of the rate, if the limit has none of its own. */
  readonly rate?: Omit<RateLesson, 'largest' | 'slowestMs'>;
};

/** The units of a counter that are in flight. */
interface Flight {
  units: number;
  /** The units that are asked for just now: some of them go out. */
  asking: number;
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
    private readonly learned: LearnedRules,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** A call goes out. The store is told once a turn of the event loop. */
  begin(counter: Counter, units: number): void {
    const flight = this.flightOf(counter);
    flight.units += units;
    if (flight.asking === 0) this.tellSoon(counter, flight);
  }

  /**
   * The store is about to be asked for units. First it brings what it knows of the upstream into the counter, and for other instances
   * these units are in flight from then on. Never rejects.
   */
  ask(counter: Counter, units: number): Promise<void> {
    const flight = this.flightOf(counter);
    const told = this.tell(counter, { ageMs: 0, inFlight: inFlightOf(flight), asking: units });
    flight.asking += units;
    return told;
  }

  /** The store has answered: what it gave goes out in this turn of the event loop. */
  asked(counter: Counter, units: number): void {
    setImmediate(() => {
      const flight = this.flightOf(counter);
      flight.asking -= units;
      this.tellSoon(counter, flight);
    });
  }

  /** A call was answered, or failed. The store is told, with what the answer said. */
  end(counter: Counter, units: number, lesson: Told): void {
    const flight = this.flightOf(counter);
    flight.units = Math.max(0, flight.units - units);
    const saysNothing = lesson.remaining === undefined && lesson.blockMs === undefined;
    if (units > 0 || !saysNothing) void this.tell(counter, { ...lesson, inFlight: inFlightOf(flight) });
    this.forgetEmpty(counter, flight);
  }

  /** Resolves when the store has been told all that is on its way. */
  async settled(): Promise<void> {
    await Promise.all(this.pending);
  }

  private flightOf(counter: Counter): Flight {
    const key = lineageId(counter.limit, counter.identity);
    let flight = this.flights.get(key);
    if (flight === undefined) this.flights.set(key, (flight = { units: 0, asking: 0, isTelling: false }));
    return flight;
  }

  private forgetEmpty({ limit, identity }: Counter, { units, asking, isTelling }: Flight): void {
    if (units === 0 && asking === 0 && !isTelling) this.flights.delete(lineageId(limit, identity));
  }

  private tellSoon(counter: Counter, flight: Flight): void {
    if (flight.isTelling) return;
    flight.isTelling = true;
    queueMicrotask(() => {
      flight.isTelling = false;
      void this.tell(counter, { ageMs: 0, inFlight: inFlightOf(flight) });
      this.forgetEmpty(counter, flight);
    });
  }

  private tell(counter: Counter, lesson: Told & Pick<Lesson, 'inFlight'>): Promise<void> {
    const told: Promise<void> = this.learn(counter, lesson)
      .catch(this.onError)
      .finally(() => this.pending.delete(told));
    this.pending.add(told);
    return told;
  }

  /** A store of the app may know nothing of it, or throw at once. */
  private async learn(counter: Counter, { rate, ...told }: Told & Pick<Lesson, 'inFlight'>): Promise<void> {
    const { limit, identity } = counter;
    const lesson: Lesson = { ...told, instance: this.instance };
    const rule = this.learned.of(limit);
    if (rule === undefined) {
      await this.store.learn?.(counter, lesson);
      return;
    }
    const whole = { accepted: 0, refused: false, ...rate, ...rule.lessonOf(identity) };
    const learnt = await this.store.learn?.(counter, { ...lesson, rate: whole });
    if (learnt !== undefined) rule.learn(identity, learnt);
  }
}

/** What is in flight, and what may be. */
function inFlightOf({ units, asking }: Flight): number {
  const sum = units + asking;
  return sum === 0 ? 0 : sum + Math.max(LEAST_MARGIN, Math.ceil(sum * MARGIN));
}
