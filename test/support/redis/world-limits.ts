import type { AlgorithmOptions } from '../../../lib/index.js';
import { most, mostInWindows, mostWithin, type Use } from '../limits/uses.js';

/** How far the clocks of a process and of a server of one machine may seem apart, in milliseconds. */
const CLOCK_MS = 2;
const SECOND_MS = 1000;

const RATED = ['fixed-window', 'sliding-window', 'sliding-log', 'gcra', 'token-bucket'] as const;

/** A limit of each algorithm that can count over several regions, by its name, and how to judge what it let pass. */
export class WorldLimits {
  readonly limits: Record<string, AlgorithmOptions>;

  constructor(
    readonly rate: number,
    readonly intervalMs: number,
  ) {
    const rated = RATED.map((algo) => [algo, { algo, rate, interval: intervalMs }]);
    this.limits = {
      ...Object.fromEntries(rated),
      'calendar-window': { algo: 'calendar-window', rate: this.aSecond, period: 'second' },
      budget: { algo: 'budget', limit: this.aSecond, period: 'second' },
    };
  }

  get names(): string[] {
    return Object.keys(this.limits);
  }

  /** By how many units more was used than a limit says, in any stretch of time; 0 if it was not. */
  over(name: string, uses: readonly Use[]): number {
    const { rate, intervalMs: interval } = this;
    const algo = RATED.find((each) => each === name);
    if (algo === undefined) return Math.max(0, mostInWindows(uses, SECOND_MS, CLOCK_MS) - this.aSecond);
    const stretches = [interval / 8, interval / 2, interval, 2 * interval];
    return Math.max(
      0,
      ...stretches.map(
        (stretchMs) => mostWithin(uses, stretchMs - CLOCK_MS) - most({ algo, rate, interval }, stretchMs),
      ),
    );
  }

  private get aSecond(): number {
    return Math.ceil((this.rate * SECOND_MS) / this.intervalMs);
  }
}
