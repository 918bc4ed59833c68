import { Counter, type Verdict } from './counter.js';
import { type AlgorithmName, costOf, INTERVALS, optionsOf, type Settings } from './settings.js';
import { SPAN } from './traffic.js';
import { type Stretch, worstStretch } from './worst-stretch.js';

/** A request, and what became of it. */
export interface Outcome extends Verdict {
  /** When it came: microseconds since the beginning. */
  readonly at: number;
}

/** Units that were left, over the time. */
export interface Curve {
  /** Microseconds since the beginning, in order. Where units are taken, a time stands there twice. */
  readonly times: number[];
  readonly remaining: number[];
}

/** What one algorithm did with the traffic. */
export interface Run {
  readonly algorithm: AlgorithmName;
  readonly quota: number;
  readonly outcomes: readonly Outcome[];
  readonly allowed: number;
  readonly refused: number;
  readonly curve: Curve;
  /** Of the units that passed: those that wait in a queue pass when they leave it. */
  readonly worst: Stretch | undefined;
  /** The most units that were held at once, where units are held. */
  readonly heldMost: number;
  /** When it ended: microseconds since the beginning. */
  readonly until: number;
}

/** When the simulated clock begins: all windows of the calendar up to a year begin there. */
export const START = Date.UTC(2030, 0, 1) * 1000;

/** How many times the curve has, besides those at which something happens. */
const CURVE_STEPS = 240;

/** Sends requests, which use one unit and come at `arrivals`, to a limit of an algorithm. */
export function simulate(algorithm: AlgorithmName, settings: Settings, arrivals: readonly number[]): Run {
  const interval = INTERVALS[settings.interval].micros;
  const counter = new Counter(optionsOf(algorithm, settings));
  const hold = Math.round((settings.hold / 100) * interval);
  const recorder = new Recorder(counter, (SPAN * interval) / CURVE_STEPS);
  const outcomes: Outcome[] = [];
  const cost = costOf(algorithm, settings);
  const held: { ticket: number | undefined; at: number; until: number }[] = [];
  let heldMost = 0;
  const releaseUntil = (now: number) => {
    while (held[0] !== undefined && held[0].until <= now) {
      const { ticket, at, until } = held.shift()!;
      recorder.record(until);
      if (ticket === undefined) counter.settle(cost - 1, START + at, START + until);
      else counter.release(ticket, START + until);
      recorder.mark(until);
    }
  };
  for (const at of arrivals) {
    releaseUntil(at);
    recorder.record(at);
    const verdict = counter.ask(START + at, cost);
    recorder.mark(at);
    outcomes.push({ ...verdict, at });
    // All are held equally long, so the first that came goes first.
    const { allowed, ticket } = verdict;
    if (ticket !== undefined || (allowed && algorithm === 'budget')) held.push({ ticket, at, until: at + hold });
    heldMost = Math.max(heldMost, held.length);
  }
  releaseUntil(SPAN * interval);
  recorder.record(SPAN * interval);
  const curve: Curve = { times: recorder.times, remaining: recorder.remaining };
  // What still waits at the end leaves later, one after another.
  const last = outcomes.reduce((latest, { at, delay }) => Math.max(latest, at + delay), SPAN * interval);
  const summary = summaryOf(outcomes, interval, last);
  return { algorithm, quota: counter.quota, outcomes, curve, ...summary, heldMost };
}

/** A run as it was at a time: microseconds since the beginning. */
export function runUntil(run: Run, until: number, interval: number): Run {
  const { times, remaining } = run.curve;
  const end = times.findLastIndex((time) => time <= until) + 1;
  const outcomes = run.outcomes.filter(({ at }) => at <= until);
  return {
    ...run,
    outcomes,
    curve: { times: times.slice(0, end), remaining: remaining.slice(0, end) },
    ...summaryOf(outcomes, interval, until),
  };
}

function summaryOf(
  outcomes: readonly Outcome[],
  interval: number,
  until: number,
): Pick<Run, 'allowed' | 'refused' | 'worst' | 'until'> {
  const allowed = outcomes.filter((outcome) => outcome.allowed);
  const passed = allowed.map(({ at, delay }) => at + delay).filter((time) => time <= until);
  return {
    allowed: allowed.length,
    refused: outcomes.length - allowed.length,
    worst: worstStretch(passed, interval),
    until,
  };
}

/** Notes what is left, in even steps and where something happens. */
class Recorder implements Curve {
  readonly times: number[] = [];
  readonly remaining: number[] = [];
  private next = 0;

  constructor(
    private readonly counter: Counter,
    private readonly step: number,
  ) {}

  /** Notes all steps up to a time, and that time. */
  record(until: number): void {
    for (; this.next < until; this.next += this.step) this.mark(Math.floor(this.next));
    this.mark(until);
  }

  mark(at: number): void {
    this.times.push(at);
    this.remaining.push(this.counter.remaining(START + at));
  }
}
