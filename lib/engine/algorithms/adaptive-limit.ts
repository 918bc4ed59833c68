import { AdaptiveProbe, AdaptiveWindow, midmean } from './adaptive-window.js';
import type { AdaptiveParameters } from './adaptive-options.js';
import type { LeaseEnd, State } from './algorithm.js';
import type { Question } from './capabilities.js';

/** A request that was let in. Times are microseconds. */
export interface Flight {
  readonly units: number;
  readonly since: number;
  /** The delay of the event loop when the request arrived. */
  readonly delay: number;
}

/** The requests in flight, the oldest first. */
export class InFlight {
  private readonly flights = new Map<number, Flight>();
  /** Their units. */
  units = 0;

  get count(): number {
    return this.flights.size;
  }

  /** The time at which the last of them began. */
  last: number | undefined;

  add(ticket: number, flight: Flight): void {
    this.flights.set(ticket, flight);
    this.units += flight.units;
    this.last = flight.since;
  }

  /** Removes a request if it is still in flight. */
  remove(ticket: number): Flight | undefined {
    const flight = this.flights.get(ticket);
    if (flight === undefined) return undefined;
    this.flights.delete(ticket);
    this.units -= flight.units;
    return flight;
  }

  /** Removes requests that began before a time. */
  dropBefore(time: number): void {
    for (const [ticket, { since }] of this.flights) {
      if (since >= time) return;
      this.remove(ticket);
    }
  }

  /** Restarts all requests after the clock was set back: they count from now on, and their latency is unknown. */
  restart(now: number): void {
    for (const [ticket, flight] of this.flights) this.flights.set(ticket, { ...flight, since: now, delay: NaN });
    if (this.last !== undefined) this.last = now;
  }
}

/** The number of requests that must end before a window is meaningful. */
const SAMPLES = 10;
/** A window or probe that takes this many times the length of a window has seen too little. */
const STALE = 20;
/** The number of windows for which a new baseline is trusted. It doubles each time that the baseline was right. */
const SETTLED = 5;
/** A baseline was right if the next one is at most this many times as large. */
const RIGHT = 1.3;
/** By chance alone, a few requests are rarely this many times as fast as others. */
const TOO_GOOD = 2;
/** Smaller delays of the event loop are ignored, since timers are inexact. In microseconds. */
const PUNCTUAL = 5000;
/** The limit decreases if at least this share of requests end by a timeout. */
const TOO_MANY_DROPPED = 0.1;
/** The share of its best throughput that the limit still assumes after a window. */
const RATE_DECAY = 0.9;
/** The weights in the baseline of a window without load: if it was slower, and if it was faster. */
const SLOWER_WEIGHT = 0.1;
const FASTER_WEIGHT = 0.5;
/** The resolution of a process's clock in microseconds. Shorter times count as this long. */
const CLOCK_TICK = 1000;
const EPSILON = 1e-9;

/** A limit on requests in flight that follows their latency, as documented in `AdaptiveOptions`. It is changed in place. */
export class AdaptiveLimit implements State {
  migrated = false;
  readonly flights = new InFlight();
  /** The number of units that are let in, with a fraction. */
  limit: number;
  /** The latency without load, once it is known. */
  baseline: number | undefined;
  private measuredAt: number;
  /** Units per microsecond: in the last window, and the recent maximum. */
  private rate = 0;
  private bestRate = 0;
  private window: AdaptiveWindow;
  private probe: AdaptiveProbe | undefined;
  private latencyBefore = 0;
  private probesAll = false;
  /** The number of windows for which the baseline is trusted. */
  private settled = SETTLED;
  /** True if the last probe measured far less than the one before, so that the next one comes soon. */
  private isUnsure = false;
  /** True until something has shown that the limit is large enough. */
  private isStarting = true;
  /** The current request, and the delay of the event loop for it. */
  private question: Question | undefined;

  constructor(
    { initial }: AdaptiveParameters,
    public now: number,
    /** The ticket of the next request. */
    public ticket: number,
  ) {
    this.limit = initial;
    this.measuredAt = now;
    this.window = new AdaptiveWindow(now);
  }

  /** Updates the state to `now`. */
  advance({ ttl }: AdaptiveParameters, now: number): void {
    if (now < this.now) this.startAnew(now);
    this.now = now;
    this.flights.dropBefore(now - ttl);
  }

  /** Records the current request. */
  asked(parameters: AdaptiveParameters, question: Question): void {
    this.question = question;
    if (question.peek) return;
    const { window, probe, now } = this;
    const { cost, load } = question;
    if (probe !== undefined && now - probe.start > STALE * parameters.window) this.giveUpProbe();
    const wanted = this.occupied + cost;
    window.peak = Math.max(window.peak, wanted);
    window.delay = Math.max(window.delay, load.eventLoopDelay);
    window.cpu = Math.max(window.cpu, load.cpu);
    if (probe === undefined && wanted > this.room(parameters)) window.refused = true;
    probe?.settle(this.flights.units);
  }

  /** The occupied units: those in flight and, by Little's law (N = X * L), those that wait for a delayed event loop. */
  get occupied(): number {
    return this.flights.units + this.rate * Math.max(0, this.delay - PUNCTUAL);
  }

  /** The number of units that requests of the current priority may take. */
  room({ shares, min, quota }: AdaptiveParameters): number {
    const priority = this.question?.priority ?? 'default';
    const { probe } = this;
    const isProbed = probe !== undefined && (priority !== 'critical' || probe.holdsForAll);
    const limit = Math.floor(bounded(isProbed ? Math.min(this.limit, probe.level) : this.limit, min, quota) + EPSILON);
    return Math.max(1, Math.floor(limit * shares[priority] + EPSILON));
  }

  /** Lets a request in. */
  enter(units: number): void {
    this.probe?.entered(this.ticket);
    this.flights.add(this.ticket++, { units, since: this.now, delay: this.delay });
  }

  /** Ends a request. */
  leave(parameters: AdaptiveParameters, ticket: number, end: LeaseEnd): void {
    const flight = this.flights.remove(ticket);
    if (flight === undefined) return;
    const { window, now } = this;
    const { tolerance } = parameters;
    this.probe?.settle(this.flights.units);
    const measurable = now - flight.since + flight.delay;
    const latency = Math.max(measurable, CLOCK_TICK);
    if (end === 'dropped') window.dropped++;
    else if (end === 'completed') window.completed += flight.units;
    // If a client left, the request would have taken longer. It counts if it had already taken too long.
    const counts = end === 'completed' || (end === 'aborted' && latency > tolerance * (this.baseline ?? 0));
    const says = counts && measurable >= 0;
    if (says) window.add(latency);
    const measured = this.probe?.ended(ticket, says ? latency : undefined);
    if (measured !== undefined) this.endProbe(parameters, measured);
    const age = now - window.start;
    if (age < parameters.window) return;
    if (window.size >= SAMPLES && age <= STALE * parameters.window) this.look(parameters);
    if (window.size >= SAMPLES || age > STALE * parameters.window) this.window = new AdaptiveWindow(now);
  }

  private get delay(): number {
    return this.question?.load.eventLoopDelay ?? 0;
  }

  /** Evaluates a window. */
  private look(parameters: AdaptiveParameters): void {
    const { window, now } = this;
    const { min, quota, smoothing } = parameters;
    this.limit = bounded(this.limit, min, quota);
    const dropped = window.dropped / window.size;
    if (dropped > TOO_MANY_DROPPED) this.limit = bounded(this.limit * (1 - smoothing * dropped), min, quota);
    if (this.probe !== undefined || window.ended === 0) return;
    const latency = midmean(window.samples);
    this.rate = window.completed / (now - window.start);
    this.bestRate = Math.max(this.rate, this.bestRate * RATE_DECAY);
    const isUsed = window.refused || window.peak >= this.limit / 2;
    if (!isUsed) this.believe(latency);
    else if (this.baseline === undefined) this.beginProbe(parameters, latency);
    else if (dropped <= TOO_MANY_DROPPED) this.follow(parameters, latency, this.baseline);
  }

  /** Adjusts the limit to the latency of a window in which it was used. */
  private follow(parameters: AdaptiveParameters, latency: number, baseline: number): void {
    const { tolerance, smoothing, min, quota } = parameters;
    const { limit, window, now } = this;
    const age = now - this.measuredAt;
    const ratio = latency / Math.max(baseline, EPSILON);
    const needed = this.needed(baseline);
    if (ratio > tolerance) {
      this.isStarting = false;
      const lower = Math.max(limit * Math.max(0.5, tolerance / ratio), needed);
      this.limit = bounded(limit + smoothing * Math.min(0, lower - limit), min, quota);
    } else {
      const room = Math.min(1, (tolerance - ratio) / (tolerance - 1));
      if (room < 0.5) this.isStarting = false;
      const higher = limit + (this.isStarting ? limit / 2 : Math.sqrt(limit)) * room;
      const isBusy = window.delay > parameters.eventLoopDelay || window.cpu > parameters.cpu;
      this.limit = bounded(isBusy ? Math.max(limit, Math.min(higher, needed)) : higher, min, quota);
    }
    const isDoubted = (ratio > tolerance || this.isUnsure) && age > this.settled * parameters.window;
    if (isDoubted || age > parameters.probeEvery) this.beginProbe(parameters, latency);
  }

  /** The units that the best recent throughput needs without a queue, plus twice the square root for bursts. */
  private needed(baseline: number): number {
    const product = this.bestRate * baseline;
    return product + 2 * Math.sqrt(product);
  }

  /** Learns the latency without load from a window in which the limit was not used. */
  private believe(latency: number): void {
    const baseline = this.baseline ?? latency;
    const weight = latency > baseline ? SLOWER_WEIGHT : FASTER_WEIGHT;
    this.baseline = baseline + weight * (latency - baseline);
    this.measuredAt = this.now;
  }

  private beginProbe({ min }: AdaptiveParameters, latency: number): void {
    this.isUnsure = false;
    const used = Math.min(Math.floor(this.limit), Math.floor(this.window.peak));
    const level = Math.max(min, Math.floor(used / 2));
    this.measuredAt = this.now;
    if (level >= used) {
      // The limit can't decrease further, so the latency at the minimum is the best estimate.
      this.baseline = latency;
      return;
    }
    this.latencyBefore = latency;
    this.probe = new AdaptiveProbe(level, min, latency, this.now, this.probesAll);
    this.probe.settle(this.flights.units);
  }

  private endProbe(parameters: AdaptiveParameters, measured: number): void {
    const { tolerance, min, quota } = parameters;
    const before = this.baseline;
    const wasRight = before !== undefined && measured <= RIGHT * before;
    this.isUnsure = wasRight && measured * TOO_GOOD < before;
    this.settled = wasRight && !this.isUnsure ? Math.min(2 * this.settled, Number.MAX_SAFE_INTEGER) : SETTLED;
    this.probe = undefined;
    this.probesAll = false;
    // A few requests that were fast by chance must not make all others look slow.
    this.baseline = wasRight && measured < before ? (measured + before) / 2 : measured;
    this.measuredAt = this.now;
    this.window = new AdaptiveWindow(this.now);
    const gradient = (tolerance * this.baseline) / this.latencyBefore;
    if (gradient < 1)
      this.limit = bounded(Math.max(this.limit * gradient, this.needed(this.baseline)), min, this.limit);
    this.limit = bounded(this.limit, min, quota);
  }

  /** Ends the probe, because the requests that it does not hold back are too many. */
  private giveUpProbe(): void {
    this.probe = undefined;
    this.probesAll = true;
    this.measuredAt = this.now;
  }

  /** Starts over after the clock was set back, because earlier measurements are useless. */
  private startAnew(now: number): void {
    this.flights.restart(now);
    this.window = new AdaptiveWindow(now);
    this.probe = undefined;
    this.measuredAt = now;
  }
}

function bounded(limit: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, limit));
}
