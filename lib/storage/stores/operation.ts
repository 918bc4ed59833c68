import type { WindowCount } from '../../engine/algorithms/algorithm.js';
import type { Counter } from '../../engine/limits/counter.js';
import { type FeatureReading, read } from './feature-reading.js';
import type { LearntRate, Lesson } from './lesson.js';
import type { Charge, Credit, HeldLease, Refund, Store } from './store.js';

/** The parameters of each operation (in addition to a list of counters), its kind of counter, and its result. */
interface Operations {
  readonly refund: { counter: Refund; with: object; answer: void };
  readonly penalize: { counter: Charge; with: object; answer: void };
  readonly renew: { counter: HeldLease; with: object; answer: boolean };
  readonly block: { counter: Counter; with: { readonly durationMs: number }; answer: boolean | void };
  readonly reset: { counter: Counter; with: object; answer: boolean | void };
  readonly learn: { counter: Counter; with: { readonly lesson: Lesson }; answer: LearntRate | undefined };
  readonly credit: { counter: Credit; with: object; answer: number };
  readonly history: { counter: Counter; with: object; answer: WindowCount[] };
  readonly read: { counter: Counter; with: { readonly reading: FeatureReading<unknown> }; answer: unknown };
  readonly blockedFor: { counter: Counter; with: object; answer: number };
}

/** The name of an operation: the method of `Store` that does it. */
export type OperationName = keyof Operations;

/** An operation of a store on counters, other than deciding checks. */
export type Operation<N extends OperationName = OperationName> = {
  readonly [K in N]: {
    readonly name: K;
    readonly counters: readonly Operations[K]['counter'][];
  } & Operations[K]['with'];
}[N];

/** The result of an operation, for the first counter. */
export type OperationAnswer<N extends OperationName> = Operations[N]['answer'];

/** A counter of any operation. */
export type OperationCounter = Counter & Partial<Pick<Refund, 'source' | 'strict' | 'candidate' | 'claim'>>;

/** How layers handle an operation. By default they don't. */
interface OperationRow<N extends OperationName> {
  /**
   * How the store in process handles it: `'too'` also runs it there; `'charged'` runs it there only for units that were charged there;
   * `'uncounted'` does the same, and applies `onStoreError` if the store can't be reached.
   * @default only the store runs it
   */
  readonly local?: 'too' | 'charged' | 'uncounted';
  /** Units may have come back: all instances forget the rejections that they remember. */
  readonly frees?: true;
  /** All instances end their prefetched units: they return them, or drop those of counters that were reset. */
  readonly ahead?: 'end' | 'drop';
  /** Is left out of the metrics. */
  readonly unmeasured?: true;
  /** Runs it on a store. */
  readonly ask: (store: Store, operation: Operation<N>) => Promise<OperationAnswer<N>>;
}

/** The operations of stores: how layers handle them, and the method that runs them. */
const OPERATIONS: { readonly [N in OperationName]: OperationRow<N> } = {
  refund: {
    local: 'uncounted',
    frees: true,
    ask: (store, { counters }) => store.refund(counters),
  },
  penalize: {
    local: 'uncounted',
    ask: (store, { counters }) => each(counters, (charge) => store.penalize(charge)),
  },
  renew: {
    local: 'charged',
    ask: (store, { counters }) => each(counters, (lease) => store.renew(lease)),
  },
  block: {
    local: 'too',
    frees: true,
    ahead: 'end',
    ask: (store, { counters, durationMs }) => each(counters, (counter) => store.block(counter, durationMs)),
  },
  reset: {
    local: 'too',
    frees: true,
    ahead: 'drop',
    ask: (store, { counters }) => store.reset(counters),
  },
  // Each response frees units, but rejections of limits that learn are not remembered anyway.
  learn: {
    local: 'too',
    ahead: 'end',
    ask: (store, { counters, lesson }) => each(counters, async (counter) => store.learn?.(counter, lesson)),
  },
  // Only where credits are kept: an instance that applied some locally would apply them twice.
  credit: { frees: true, ask: (store, { counters }) => each(counters, (credit) => store.credit!(credit)) },
  history: { ask: (store, { counters }) => each(counters, (counter) => store.history(counter)) },
  read: { ask: (store, { counters, reading }) => each(counters, async ({ limit }) => read(store, limit, reading)) },
  blockedFor: {
    unmeasured: true,
    ask: (store, { counters }) => each(counters, (counter) => store.blockedFor!(counter)),
  },
};

/** How layers handle an operation. */
export function rowOf<N extends OperationName>({ name }: { readonly name: N }): OperationRow<N> {
  return OPERATIONS[name];
}

/** The name of an operation in metrics. If it reads the data of a feature, the feature names it. */
export function measuredName(operation: Operation): string {
  return operation.name === 'read' ? operation.reading.name : operation.name;
}

/**
 * Returns true for a lesson that blocks nobody. It only makes a counter stricter, so it ends nothing and is learned where units are
 * counted.
 */
export function blocksNobody({ lesson }: { readonly name: OperationName; readonly lesson?: Lesson }): boolean {
  return lesson !== undefined && !((lesson.blockMs ?? 0) > 0);
}

/** Runs it for all counters in one turn, and so in one call. */
async function each<C, T>(counters: readonly C[], ask: (counter: C) => Promise<T>): Promise<T> {
  const [answer] = await Promise.all(counters.map(ask));
  return answer as T;
}
