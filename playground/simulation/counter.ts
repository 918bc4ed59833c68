import type { Algorithm, Parameters, State } from '../../lib/engine/algorithms/algorithm.js';
import { algorithms, type AlgorithmOptions } from '../../lib/engine/algorithms/index.js';
import { toMs } from '../../lib/storage/stores/memory/evaluation.js';

/** What a limit says of one request. */
export interface Verdict {
  readonly allowed: boolean;
  /** Whole units that are left now. */
  readonly remaining: number;
  /** The wait in milliseconds after which the request would fit; 0 if it does. */
  readonly retryAfterMs: number;
  /** For how many milliseconds it is held before it passes. */
  readonly delayMs: number;
  /** The same to the microsecond. */
  readonly delay: number;
  /** What its unit was given, where units are held until they are released. */
  readonly ticket: number | undefined;
}

/** One counter of a limit, on the algorithms of the library. Times are whole microseconds, and never go back. */
export class Counter {
  private readonly algorithm: Algorithm;
  private readonly parameters: Parameters;
  private stored: State | undefined;

  /** Reads the options. Throws `RateLimitConfigError`. */
  constructor(options: AlgorithmOptions, location = 'simulation') {
    const algorithm = algorithms.get(options.algo);
    if (algorithm === undefined) throw new TypeError(`No algorithm is called ${options.algo}`);
    this.algorithm = algorithm;
    this.parameters = algorithm.compile(options as never, location);
  }

  /** The most units that can be allowed at once. */
  get quota(): number {
    return this.parameters.quota;
  }

  /** Asks for units, and takes them if they fit. */
  ask(now: number, cost = 1): Verdict {
    const { algorithm, parameters } = this;
    const state = this.at(now);
    const allowed = algorithm.fits(parameters, state, cost);
    const verdict = {
      allowed,
      retryAfterMs: allowed ? 0 : toMs(algorithm.retryAfter(parameters, state, cost)),
      delay: allowed ? (algorithm.queue?.delay(parameters, state, cost) ?? 0) : 0,
      ticket: allowed ? algorithm.leases?.ticket(parameters, state, cost) : undefined,
    };
    if (allowed) algorithm.take(parameters, state, cost);
    const remaining = this.left(state);
    if (allowed || state.migrated) this.stored = algorithm.save(parameters, state);
    return { ...verdict, remaining, delayMs: toMs(verdict.delay) };
  }

  /** Whole units that are left. */
  remaining(now: number): number {
    return this.left(this.at(now));
  }

  /** Releases a unit that is held. */
  release(ticket: number, now: number): void {
    const state = this.at(now);
    this.algorithm.give(this.parameters, state, 1, ticket);
    this.stored = this.algorithm.save(this.parameters, state);
  }

  /** Gives back the units of a request that were reserved and not used, if they still count. */
  settle(unused: number, chargedAt: number, now: number): void {
    const { algorithm, parameters } = this;
    const state = this.at(now);
    if (algorithm.holds?.counts(parameters, state, chargedAt, now) !== true) return;
    algorithm.give(parameters, state, unused, undefined, chargedAt);
    this.stored = algorithm.save(parameters, state);
  }

  private at(now: number): State {
    return this.algorithm.open(this.parameters, this.stored, now);
  }

  private left(state: State): number {
    return Math.max(0, this.algorithm.remaining(this.parameters, state));
  }
}
