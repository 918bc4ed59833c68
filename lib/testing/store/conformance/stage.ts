import { deepStrictEqual, ok } from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import type { AlgorithmName, AlgorithmOptions } from '../../../engine/algorithms/index.js';
import { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { MemoryStore } from '../../../storage/stores/memory/memory.store.js';
import type { Check, Store, StoreDecision } from '../../../storage/stores/store.js';

/** The quota of every limit in the suite. */
export const QUOTA = 5;
/** Long enough that no units come back while a slow store answers. */
const LONG = '30d';

/** The options of a limit for each algorithm, with the length of a window where that can be chosen. */
const OPTIONS: Partial<Record<AlgorithmName, (interval: string) => AlgorithmOptions>> = {
  'fixed-window': (interval) => ({ algo: 'fixed-window', rate: QUOTA, interval }),
  'sliding-window': (interval) => ({ algo: 'sliding-window', rate: QUOTA, interval }),
  'sliding-log': (interval) => ({ algo: 'sliding-log', rate: QUOTA, interval }),
  'token-bucket': (interval) => ({ algo: 'token-bucket', rate: QUOTA, interval }),
  gcra: (interval) => ({ algo: 'gcra', rate: QUOTA, interval }),
  'leaky-bucket': (interval) => ({ algo: 'leaky-bucket', rate: QUOTA, interval, queue: QUOTA - 1 }),
  'calendar-window': () => ({ algo: 'calendar-window', rate: QUOTA, period: 'year' }),
  budget: () => ({ algo: 'budget', limit: QUOTA, period: 'year' }),
  concurrency: (ttl) => ({ algo: 'concurrency', limit: QUOTA, ttl }),
};

/** The algorithms that count for several instances: `adaptive` never does. */
export const ALGORITHMS = Object.keys(OPTIONS) as AlgorithmName[];
/** The algorithms whose whole quota is back after an interval that the suite chooses. */
export const REFILLED: readonly AlgorithmName[] = [
  'fixed-window',
  'sliding-window',
  'sliding-log',
  'token-bucket',
  'gcra',
];

export function limitOf(algo: AlgorithmName, name: string, interval = LONG, settings: object = {}): CompiledLimit {
  return new CompiledLimit(OPTIONS[algo]!(interval), { location: 'storeConformance', name, ...settings });
}

/** The arguments for creating a store. */
export interface StoreToTest {
  /**
   * The time in whole microseconds since the epoch. A store that uses this clock is tested without waiting and with microsecond precision.
   * For a store with a clock of its own, the suite waits and allows for the duration of its calls.
   */
  readonly clock: () => number;
}

/** Creates an empty store. If stores share a database, its counters must not begin with the state that an earlier test left. */
export type MakeStore = (given: StoreToTest) => Store | Promise<Store>;

export interface Case {
  readonly name: string;
  run(stage: Stage): Promise<void>;
}

/** Two stores with clocks of their own may differ by this many milliseconds. */
const SPARE_MS = 50;
const TIMES = ['retryAfterMs', 'resetAfterMs', 'delayMs'] as const;

let made = 0;

/** The store under test, next to the store in memory whose decisions are the expected ones. */
export class Stage {
  /** The store in memory, on the same clock. */
  readonly reference = new MemoryStore({ clock: () => this.now() });
  /** A unique prefix for the limits of this stage, because counters of a shared database outlive it. */
  readonly id = `conformance-${process.pid}-${Date.now().toString(36)}-${++made}`;
  private readonly begun = Date.now();
  private movedMs = 0;
  /** True if the store uses the clock of the suite. */
  private usesClock = false;
  store!: Store;

  static async of(make: MakeStore, algo: AlgorithmName): Promise<Stage> {
    const stage = new Stage();
    const clock = () => {
      stage.usesClock = true;
      return stage.now();
    };
    stage.store = await make({ clock });
    await stage.store.open?.();
    // By now it is known if the store uses the clock.
    await stage.store.check([
      { entries: [{ limit: limitOf(algo, stage.id), identity: 'nobody', cost: 1 }], peek: true },
    ]);
    return stage;
  }

  /** The time in microseconds. The suite's clock only changes when it is moved. */
  now(): number {
    return ((this.usesClock ? this.begun : Date.now()) + this.movedMs) * 1000;
  }

  /** Lets time pass: moves the clock, or waits. */
  async pass(ms: number): Promise<void> {
    if (this.usesClock) this.movedMs += ms;
    else await wait(ms);
  }

  /** Moves the clock; does nothing for a store with a clock of its own. */
  move(ms: number): void {
    if (this.usesClock) this.movedMs += ms;
  }

  /** Makes the same check in both stores, compares the decisions, and returns them. */
  async both(check: Check): Promise<readonly [got: StoreDecision[], expected: StoreDecision[]]> {
    const { got, expected, isClose } = await this.compare(check);
    ok(!isClose, 'the clocks of the two stores differ too much to compare their decisions');
    return [got, expected];
  }

  /**
   * Like `both`, for a check that may come at the moment when a unit comes back. With two clocks, either decision is right then. From there
   * on the two stores have different states, so both forget the counters of the check.
   */
  async compare(check: Check) {
    const since = Date.now();
    const [[expected], [got]] = await Promise.all([this.reference.check([check]), this.store.check([check])]);
    const spare = this.usesClock ? 0 : SPARE_MS + Date.now() - Math.min(since, this.begun);
    const isClose = areClose(got!, expected!, spare);
    for (const [index, { limit }] of check.entries.entries()) {
      const [theirs, ours] = [got![index], expected![index]!];
      if (isClose) sameLimit(theirs, ours, limit);
      else sameDecision(theirs, ours, spare, limit);
    }
    if (isClose) await this.doBoth((store) => store.reset(check.entries));
    return { got: got!, expected: expected!, isClose };
  }

  async doBoth(work: (store: Store, index: 0 | 1) => Promise<unknown>): Promise<void> {
    await Promise.all([work(this.store, 0), work(this.reference, 1)]);
  }

  /** Like `both`, for one limit. */
  async take(limit: CompiledLimit, cost = 1, identity = 'user:1', more: Partial<Check> = {}): Promise<StoreDecision> {
    const [[decision]] = await this.both({ entries: [{ limit, identity, cost }], ...more });
    return decision!;
  }

  async close(): Promise<void> {
    await this.reference.close();
    await this.store.close();
  }
}

/**
 * True if two stores decided differently only because of the time between their clocks: the rejected limit would have been allowed that
 * much later.
 */
function areClose(got: readonly StoreDecision[], expected: readonly StoreDecision[], spareMs: number): boolean {
  const waits = expected.flatMap((ours, index) => {
    const theirs = got[index];
    if (theirs === undefined || theirs.allowed === ours.allowed) return [];
    return [ours.allowed ? theirs.retryAfterMs : ours.retryAfterMs];
  });
  return spareMs > 0 && waits.length > 0 && waits.every((ms) => ms <= spareMs);
}

/** Compares the properties of the limit in a decision, no matter how it was decided. */
function sameLimit(got: StoreDecision | undefined, expected: StoreDecision, of: CompiledLimit): void {
  const [theirs, ours] = [got, expected].map((each) => [each?.limit, each?.quota, each?.offences]);
  deepStrictEqual(theirs, ours, `the decision of '${of.algorithm.name}'`);
}

/** Compares the properties of a decision that users see. */
function sameDecision(
  got: StoreDecision | undefined,
  expected: StoreDecision,
  spareMs: number,
  limit: CompiledLimit,
): void {
  // A unit that comes back gradually may come between the readings of the two clocks.
  const left = got !== undefined && spareMs > 0 && Math.abs(got.remaining - expected.remaining) <= 1;
  const wanted = left ? { ...expected, remaining: got.remaining } : expected;
  deepStrictEqual(seen(got), seen(wanted), `the decision of '${limit.algorithm.name}'`);
  for (const time of TIMES) {
    const difference = got![time] === expected[time] ? 0 : Math.abs(got![time] - expected[time]);
    ok(
      difference <= spareMs,
      `'${time}' of '${limit.algorithm.name}': expected ${expected[time]}${spareMs > 0 ? `, give or take ${spareMs}` : ''}, received ${got![time]}`,
    );
  }
}

function seen({ allowed, limit, quota, remaining, offences }: Partial<StoreDecision> = {}): Partial<StoreDecision> {
  return { allowed, limit, quota, remaining, offences } as Partial<StoreDecision>;
}
