import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { Histogram } from './histogram.js';
import type { SimulatedCounter } from './simulated-counter.js';

/** The period of a limit's length in which one counter admitted most. */
interface Stretch {
  units: number;
  identity: string;
  /** The first and the last of its units, in microseconds. */
  from: number;
  to: number;
}

/** A limit, and its results. */
export class SimulatedLimit {
  /** The requests that it refused. */
  refused = 0;
  /** Among them, those whose cost it can never allow. */
  never = 0;
  /** The waits reported to the others. */
  readonly waits = new Histogram();
  /** How long it delays requests. */
  readonly delays = new Histogram();
  worst: Stretch | undefined;
  /** Whether the worst period is exact; otherwise at least as much was admitted. */
  isExact = true;
  private length: number | undefined;

  constructor(
    readonly limit: CompiledLimit,
    /** As written on the command line. */
    readonly spec: string,
    /** The index of the key that it counts by, among those of a request. */
    readonly source: number,
    /** The index of this limit, among those of that key. */
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
