import { randomInt } from 'node:crypto';
import { type Counter, lineageId } from '../../../engine/limits/counter.js';
import type { Lesson, RateLesson } from '../../../storage/stores/lesson.js';
import type { Store } from '../../../storage/stores/store.js';
import type { LearnedRules } from './learned-rules.js';
import { getOrMake } from '../../../engine/util/objects.js';

/** The share to add to the units in flight, because other clients also have calls on their way that nobody reports. */
const MARGIN = 1 / 4;
const LEAST_MARGIN = 2;
/** Node's random integers are limited to this range. */
const INSTANCES = 2 ** 48 - 1;

/** The lesson of one response. It is reported together with the units in flight. */
type AnswerLesson = Omit<Lesson, 'inFlight' | 'instance' | 'rate'> & {
  /** The lesson about the rate, for limits without a rate of their own. */
  readonly rate?: Omit<RateLesson, 'largest' | 'slowestMs'>;
};

interface Flight {
  units: number;
  /** The units that this process is requesting from the store. Some of them will be granted and sent. */
  asking: number;
  isReporting: boolean;
}

/** Tracks the units that this process has in flight: charged for calls that the upstream has not answered yet. */
export class Flights {
  private readonly flights = new Map<string, Flight>();
  private readonly instance = randomInt(INSTANCES);
  private readonly pending = new Set<Promise<void>>();

  constructor(
    private readonly store: Store,
    private readonly learned: LearnedRules,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** Counts a call that is sent. Reports to the store at most once per turn of the event loop. */
  begin(counter: Counter, units: number): void {
    const flight = this.flightOf(counter);
    flight.units += units;
    if (flight.asking === 0) this.reportSoon(counter, flight);
  }

  /**
   * Announces units before they are requested from the store. The store first applies the known state of the upstream to the counter, and
   * other instances count these units as in flight from then on. Never rejects.
   */
  ask(counter: Counter, units: number): Promise<void> {
    const flight = this.flightOf(counter);
    const reporting = this.report(counter, { ageMs: 0, inFlight: inFlightOf(flight), asking: units });
    flight.asking += units;
    return reporting;
  }

  /** Records the store's decision. The granted units are sent in this turn of the event loop. */
  storeAnswered(counter: Counter, units: number): void {
    setImmediate(() => {
      const flight = this.flightOf(counter);
      flight.asking -= units;
      this.reportSoon(counter, flight);
    });
  }

  /** Ends a call that was answered or has failed, and reports the lesson of its response to the store. */
  end(counter: Counter, units: number, lesson: AnswerLesson): void {
    const flight = this.flightOf(counter);
    flight.units = Math.max(0, flight.units - units);
    const saysNothing = lesson.remaining === undefined && lesson.blockMs === undefined;
    if (units > 0 || !saysNothing) void this.report(counter, { ...lesson, inFlight: inFlightOf(flight) });
    this.forgetEmpty(counter, flight);
  }

  /** Resolves when all pending reports have reached the store. */
  async settled(): Promise<void> {
    await Promise.all(this.pending);
  }

  private flightOf(counter: Counter): Flight {
    const key = lineageId(counter.limit, counter.identity);
    return getOrMake(this.flights, key, () => ({ units: 0, asking: 0, isReporting: false }));
  }

  private forgetEmpty({ limit, identity }: Counter, { units, asking, isReporting }: Flight): void {
    if (units === 0 && asking === 0 && !isReporting) this.flights.delete(lineageId(limit, identity));
  }

  private reportSoon(counter: Counter, flight: Flight): void {
    if (flight.isReporting) return;
    flight.isReporting = true;
    queueMicrotask(() => {
      flight.isReporting = false;
      void this.report(counter, { ageMs: 0, inFlight: inFlightOf(flight) });
      this.forgetEmpty(counter, flight);
    });
  }

  private report(counter: Counter, lesson: AnswerLesson & Pick<Lesson, 'inFlight'>): Promise<void> {
    const reporting: Promise<void> = this.learn(counter, lesson)
      .catch(this.onError)
      .finally(() => this.pending.delete(reporting));
    this.pending.add(reporting);
    return reporting;
  }

  /** An app's own store may not support this, or may throw synchronously. */
  private async learn(counter: Counter, { rate, ...answer }: AnswerLesson & Pick<Lesson, 'inFlight'>): Promise<void> {
    const { limit, identity } = counter;
    const lesson: Lesson = { ...answer, instance: this.instance };
    const rule = this.learned.of(limit);
    if (rule === undefined) {
      await this.store.learn?.(counter, lesson);
      return;
    }
    const whole = { accepted: 0, refused: false, ...rate, ...rule.lessonOf(identity) };
    const learnt = await this.store.learn?.(counter, { ...lesson, quota: undefined, rate: whole });
    if (learnt !== undefined) rule.learn(identity, learnt);
  }
}

/** The units in flight, plus a margin for those of other clients. */
function inFlightOf({ units, asking }: Flight): number {
  const sum = units + asking;
  return sum === 0 ? 0 : sum + Math.max(LEAST_MARGIN, Math.ceil(sum * MARGIN));
}
