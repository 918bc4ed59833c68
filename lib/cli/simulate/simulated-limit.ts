import type { CompiledLimit } from '../../limits/compiled-limit.js';
import { Histogram } from './histogram.js';
import type { SimulatedCounter } from './simulated-counter.js';

/** The stretch of a limit's length in which one counter admitted most. */
interface Stretch {
  units: number;
  identity: string;
  /** The first and the last of its units, in microseconds. */
  from: number;
  to: number;
}

/** A limit, and what it did. */
export class SimulatedLimit {
  /** Requests that it refused. */
  refused = 0;
  /** Those of them whose cost it never allows. */
  never = 0;
  /** What the others were told. */
  readonly waits = new Histogram();
  /** How long requests are held that it delays. */
  readonly delays = new Histogram();
  worst: Stretch | undefined;
  /** Whether the worst stretch is exact, or no less was admitted. */
  isExact = true;
  private length: number | undefined;

  constructor(
    readonly limit: CompiledLimit,
    /** As it stands on the command line. */
    readonly spec: string,
    /** Which of the keys of a request it counts by. */
    readonly source: number,
    /** Which of the limits of that key it is. */
    readonly place: number,
  ) {}

  /** Its length: that of the window at the first request. */
  get lengthMs(): number {
    return this.length ?? 0;
  }

  refuse(retryAfterMs: number): void {
    this.refused++;
    if (retryAfterMs === Infinity) this.never++;
    else this.waits.add(retryAfterMs);
  }

  admit({ admitted }: SimulatedCounter, identity: string, cost: number, time: number, delayMs: number): void {
    this.length ??= this.limit.windowMs(time / 1000);
    const units = admitted.add(time, cost, this.length * 1000);
    if (!admitted.isExact) this.isExact = false;
    if (this.worst === undefined || units > this.worst.units) {
      this.worst = { units, identity, from: admitted.start, to: time };
    }
    if (this.limit.algorithm.queue !== undefined) this.delays.add(delayMs);
  }
}
