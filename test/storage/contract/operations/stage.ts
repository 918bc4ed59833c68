import { expect } from '@jest/globals';
import type { Store } from '../../../../lib/index.js';
import { CompiledLimit, type Lesson } from '../../../../lib/testing/store/index.js';
import { ask, compile, type ManualClock } from '../../../support/limits/stores.js';
import { storeStage } from '../store-stage.js';
import { HOUR, five, identity, start, counterOf } from './limits.js';

/** A store on a clock that tests move, fresh for each test, and what is done to it. */
export type OperationsStage = ReturnType<typeof operationsStage>;

/** Sets the stage for each test. `make` makes a store that asks the clock for the time. */
export function operationsStage(make: (clock: ManualClock) => Store) {
  const stage = storeStage(make, start);
  const { at } = stage;

  const take = (limit: CompiledLimit, cost = 1) => ask(stage.store, limit, { cost });
  /** What a check would say, but for the name that the next lease would get. */
  const peek = async (limit: CompiledLimit, cost = 1) => {
    const { ticket: _, chargedAt: _at, ...decision } = await ask(stage.store, limit, { cost, peek: true });
    return decision;
  };
  const reserve = (limit: CompiledLimit, cost = 1, maxWaitMs = HOUR) =>
    stage.store.reserve({ limit, identity, cost, maxWaitMs });
  const penalize = (limit: CompiledLimit, units: number) => stage.store.penalize({ limit, identity, units });
  /** A call was answered at once, with nothing else in flight, unless told otherwise. */
  const learn = (limit: CompiledLimit, lesson: Partial<Lesson>) =>
    stage.store.learn!(counterOf(limit), { ageMs: 0, inFlight: 0, instance: 1, window: 7, ...lesson });
  const block = (limit: CompiledLimit, ms: number) => stage.store.block(counterOf(limit), ms);
  const unblock = (limit: CompiledLimit) => stage.store.block(counterOf(limit), 0);
  /** Gives back what a decision took. */
  const giveBack = (limit: CompiledLimit, units: number, { ticket }: { ticket?: number }) =>
    stage.store.refund([{ limit, identity, units, ticket }]);

  /** From here on, `cost` units fit after `ms`, and not a millisecond earlier. */
  async function expectToFitAfter(from: number, limit: CompiledLimit, ms: number, cost = 1): Promise<void> {
    await expect(peek(limit, cost)).resolves.toMatchObject({ allowed: false, retryAfterMs: ms });
    at(from + ms - 1);
    await expect(peek(limit, cost)).resolves.toMatchObject({ allowed: false, retryAfterMs: 1 });
    at(from + ms);
    await expect(peek(limit, cost)).resolves.toMatchObject({ allowed: true, retryAfterMs: 0 });
  }

  /** 5 are taken; of what follows, the units are there after 6 s and after 8 s. */
  async function reserved(algo: 'token-bucket' | 'gcra') {
    const limit = compile(five[algo]);
    await take(limit, 5);
    const [first, second] = [await reserve(limit, 3), await reserve(limit, 1)];
    expect([first.delayMs, second.delayMs]).toEqual([6000, 8000]);
    return { limit, first, second };
  }

  return Object.assign(stage, {
    take,
    peek,
    reserve,
    penalize,
    learn,
    block,
    unblock,
    giveBack,
    expectToFitAfter,
    reserved,
  });
}
