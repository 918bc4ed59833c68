import { deepStrictEqual, ok } from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import type { AlgorithmName, AlgorithmOptions } from '../../../engine/algorithms/index.js';
import { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { MemoryStore } from '../../../storage/stores/memory/memory.store.js';
import type { Check, Store, StoreDecision } from '../../../storage/stores/store.js';

/** The quota of every limit of the suite. */
export const QUOTA = 5;
/** Long, so that what comes back while a slow store answers changes nothing. */
const LONG = '30d';

/** How the suite writes a limit of each algorithm, with how long a window takes where that can be chosen. */
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
/** Those of which a whole quota is there again after an interval that the suite chooses. */
export const REFILLED: readonly AlgorithmName[] = [
  'fixed-window',
  'sliding-window',
  'sliding-log',
  'token-bucket',
  'gcra',
];

/** A limit of 5 units. */
export function limitOf(algo: AlgorithmName, name: string, interval = LONG, settings: object = {}): CompiledLimit {
  return new CompiledLimit(OPTIONS[algo]!(interval), { location: 'storeConformance', name, ...settings });
}

/** What a store is made with. */
export interface StoreToTest {
  /**
   * The time in whole microseconds since the epoch. A store that asks it is tested without waiting, and to the microsecond; with
   * one that has a clock of its own the suite waits, and allows for the time that its calls take.
   */
  readonly clock: () => number;
}

/** Makes an empty store, or one of which no counter begins with what the suite made before. */
export type MakeStore = (given: StoreToTest) => Store | Promise<Store>;

/** A test of the suite. */
export interface Case {
  readonly name: string;
  run(stage: Stage): Promise<void>;
}

/** Times of two stores with clocks of their own differ by so much, in milliseconds. */
const SPARE_MS = 50;
/** The parts of a decision that are times. */
const TIMES = ['retryAfterMs', 'resetAfterMs', 'delayMs'] as const;

/** How both stores decided one check. */
export interface Compared {
  readonly got: StoreDecision[];
  readonly expected: StoreDecision[];
  /** True if one store refused what the other allowed, since the time between their clocks decided it. */
  readonly isClose: boolean;
}

let made = 0;

/** A store to test beside ours, which says what is right. */
export class Stage {
  /** Ours, on the same clock. */
  readonly reference = new MemoryStore({ clock: () => this.now() });
  /** No other stage has its names of limits: counters of a shared database last. */
  readonly id = `conformance-${process.pid}-${Date.now().toString(36)}-${++made}`;
  private readonly begun = Date.now();
  private movedMs = 0;
  /** Whether the store asks the clock of the suite. */
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
    // By now it is known whether the store asks the clock.
    await stage.store.check([
      { entries: [{ limit: limitOf(algo, stage.id), identity: 'nobody', cost: 1 }], peek: true },
    ]);
    return stage;
  }

  /** The time in microseconds. With the clock of the suite, it only changes when it is moved. */
  now(): number {
    return ((this.usesClock ? this.begun : Date.now()) + this.movedMs) * 1000;
  }

  /** Lets time pass: by the clock, or really. */
  async pass(ms: number): Promise<void> {
    if (this.usesClock) this.movedMs += ms;
    else await wait(ms);
  }

  /** Lets time pass where nobody has to wait for it. */
  move(ms: number): void {
    if (this.usesClock) this.movedMs += ms;
  }

  /** Asks both stores, compares what they decide, and returns what the store and ours answered. */
  async both(check: Check): Promise<readonly [got: StoreDecision[], expected: StoreDecision[]]> {
    const { got, expected, isClose } = await this.compare(check);
    ok(!isClose, 'the clocks of the two stores differ too much to compare their decisions');
    return [got, expected];
  }

  /**
   * The same for a check that may come at the moment when a unit comes back. Between two clocks either decision is right then. What the
   * two stores know differs from there on, so both forget the counters of the check.
   */
  async compare(check: Check): Promise<Compared> {
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

  /** Has both stores do the same. */
  async doBoth(work: (store: Store, index: 0 | 1) => Promise<unknown>): Promise<void> {
    await Promise.all([work(this.store, 0), work(this.reference, 1)]);
  }

  /** The same for one limit. */
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
 * True if two stores decided differently only because of the time between their clocks: the refused limit would have been allowed
 * that much later.
 */
function areClose(got: readonly StoreDecision[], expected: readonly StoreDecision[], spareMs: number): boolean {
  const waits = expected.flatMap((ours, index) => {
    const theirs = got[index];
    if (theirs === undefined || theirs.allowed === ours.allowed) return [];
    return [ours.allowed ? theirs.retryAfterMs : ours.retryAfterMs];
  });
  return spareMs > 0 && waits.length > 0 && waits.every((ms) => ms <= spareMs);
}

/** Compares what a decision says of its limit, however it was decided. */
function sameLimit(got: StoreDecision | undefined, expected: StoreDecision, of: CompiledLimit): void {
  const [theirs, ours] = [got, expected].map((each) => [each?.limit, each?.quota, each?.offences]);
  deepStrictEqual(theirs, ours, `the decision of '${of.algorithm.name}'`);
}

/** Compares what users see of a decision. */
function sameDecision(
  got: StoreDecision | undefined,
  expected: StoreDecision,
  spareMs: number,
  limit: CompiledLimit,
): void {
  // What comes back little by little may come between two clocks.
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

/** What has to be exact. */
function seen({ allowed, limit, quota, remaining, offences }: Partial<StoreDecision> = {}): Partial<StoreDecision> {
  return { allowed, limit, quota, remaining, offences } as Partial<StoreDecision>;
}
