import type { WindowCount } from '../../engine/algorithms/algorithm.js';
import type { Counter } from '../../engine/limits/counter.js';
import { type FeatureReading, read } from './feature-reading.js';
import type { LearntRate, Lesson } from './lesson.js';
import type { Charge, Credit, HeldLease, Refund, Store } from './store.js';

/** What each operation takes besides a list of counters, what stands for a counter there, and what the store answers. */
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

/** What a store does with counters besides deciding checks. */
export type Operation<N extends OperationName = OperationName> = {
  readonly [K in N]: {
    readonly name: K;
    readonly counters: readonly Operations[K]['counter'][];
  } & Operations[K]['with'];
}[N];

/** What a store answers to it, of the first counter. */
export type OperationAnswer<N extends OperationName> = Operations[N]['answer'];

/** A counter of any operation. */
export type OperationCounter = Counter & Partial<Pick<Refund, 'source' | 'strict' | 'candidate' | 'claim'>>;

/** How layers treat an operation. What it does not say, it does not. */
interface OperationRow<N extends OperationName> {
  /**
   * What becomes of it in process: `'too'` has it done there besides; `'charged'` only for what was charged there; `'uncounted'` for
   * that, and as `onStoreError` says for what the store could not be asked.
   * @default the store alone does it
   */
  readonly local?: 'too' | 'charged' | 'uncounted';
  /** Units may be there again: all instances forget the refusals that they remember. */
  readonly frees?: true;
  /** All instances end the units that they took ahead of requests: they give them back, or drop what was reset. */
  readonly ahead?: 'end' | 'drop';
  /** Is left out of the metrics. */
  readonly unmeasured?: true;
  /** Has a store do it. */
  readonly ask: (store: Store, operation: Operation<N>) => Promise<OperationAnswer<N>>;
}

/** The operations of stores: for each of them what its layers do, and the method that does it. */
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
  // It frees units with each answer: of limits that learn no refusals are remembered.
  learn: {
    local: 'too',
    ahead: 'end',
    ask: (store, { counters, lesson }) => each(counters, async (counter) => store.learn?.(counter, lesson)),
  },
  // Only where credits are kept: an instance that took some by itself would take them twice.
  credit: { frees: true, ask: (store, { counters }) => each(counters, (credit) => store.credit!(credit)) },
  history: { ask: (store, { counters }) => each(counters, (counter) => store.history(counter)) },
  read: { ask: (store, { counters, reading }) => each(counters, async ({ limit }) => read(store, limit, reading)) },
  blockedFor: {
    unmeasured: true,
    ask: (store, { counters }) => each(counters, (counter) => store.blockedFor!(counter)),
  },
};

/** How layers treat an operation. */
export function rowOf<N extends OperationName>({ name }: { readonly name: N }): OperationRow<N> {
  return OPERATIONS[name];
}

/** What metrics call an operation: of one that reads what a feature keeps, the feature says it. */
export function measuredName(operation: Operation): string {
  return operation.name === 'read' ? operation.reading.name : operation.name;
}

/** Whether it only tightens: a lesson that blocks nobody ends nothing, and is learnt where its units are counted. */
export function blocksNobody({ lesson }: { readonly name: OperationName; readonly lesson?: Lesson }): boolean {
  return lesson !== undefined && !((lesson.blockMs ?? 0) > 0);
}

/** Has it done for all counters in one turn, and so in one call. */
async function each<C, T>(counters: readonly C[], ask: (counter: C) => Promise<T>): Promise<T> {
  const [answer] = await Promise.all(counters.map(ask));
  return answer as T;
}
