import { afterEach, beforeEach, expect } from '@jest/globals';
import type { AlgorithmOptions, Store } from '../../../../lib/index.js';
import { CompiledLimit, type StoreDecision } from '../../../../lib/testing/store/index.js';
import { ask, compile, ManualClock } from '../../../support/limits/stores.js';

export type Expected = Partial<Omit<StoreDecision, 'limit' | 'source'>>;

/** A store on a clock that tests move, fresh for each test, and what is done to it. */
export type CheckStage = ReturnType<typeof checkStage>;

/** Sets the stage for each test. `make` makes a store that asks the clock for the time. */
export function checkStage(make: (clock: ManualClock) => Store) {
  let clock: ManualClock;
  let store: Store;
  let start: number;

  beforeEach(() => {
    clock = new ManualClock();
    setTime('2026-09-21T10:00:00Z');
    store = make(clock);
  });
  afterEach(() => store.close());

  function setTime(time: string): void {
    start = Date.parse(time);
    clock.micros = start * 1000;
  }

  /** Milliseconds after the start. */
  function at(ms: number): void {
    clock.micros = Math.round((start + ms) * 1000);
  }

  async function peekAfter(ms: number, limit: CompiledLimit): Promise<[remaining: number, retryAfterMs: number]> {
    at(ms);
    const { remaining, retryAfterMs } = await ask(store, limit, { peek: true });
    return [remaining, retryAfterMs];
  }

  async function play(options: AlgorithmOptions, steps: readonly [ms: number, cost: number, expected: Expected][]) {
    const limit = compile(options);
    for (const [ms, cost, expected] of steps) {
      at(ms);
      const { limit: name, quota, source, ticket: _, ...decision } = await ask(store, limit, { cost });
      expect({ ms, ...decision }).toEqual({ ms, delayMs: 0, retryAfterMs: 0, ...expected });
      expect([name, quota]).toEqual([limit.name, limit.quota]);
      expect(['redis', 'memory']).toContain(source);
    }
  }

  return {
    get clock() {
      return clock;
    },
    get store() {
      return store;
    },
    get start() {
      return start;
    },
    setTime,
    at,
    peekAfter,
    play,
  };
}
