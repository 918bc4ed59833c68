import fc from 'fast-check';
import type { AlgorithmOptions, Store } from '../../../../lib/index.js';
import { CompiledLimit, type Counter, type StoreDecision } from '../../../../lib/testing/store/index.js';
import { clockStep, costOf, costShare } from '../../../support/limits/arbitraries.js';
import { ask } from '../../../support/limits/stores.js';

/** One thing that is done to one counter of a history. */
export const anyOperation = fc.record({
  kind: fc.constantFrom(
    'consume',
    'consume',
    'consume',
    'peek',
    'reserve',
    'penalize',
    'block',
    'unblock',
    'refund',
    'refund without a place',
    'renew',
    'reset',
  ),
  limit: fc.nat(2),
  identity: fc.nat(1),
  units: costShare,
  clock: clockStep,
  /** A share of the limit's window. */
  time: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 3, noNaN: true })),
});

export interface Taken extends Counter {
  readonly units: number;
  readonly ticket: number | undefined;
}

/** Limits for a history; the last one blocks whom it refuses. */
export const limitsOf = (options: readonly AlgorithmOptions[]): CompiledLimit[] =>
  options.map(
    (each, index) =>
      new CompiledLimit(each, {
        location: 'test',
        name: `${each.algo} ${index}`,
        blockFor: index === options.length - 1 ? 7_654_321 : 0,
      }),
  );

/** Does one thing, and says what was decided, if anything was. */
export async function perform(
  store: Store,
  { kind, limit: number, identity: who, units: share, time }: Omit<Operation, 'clock'>,
  { limits, taken, now }: { limits: readonly CompiledLimit[]; taken: Taken[]; now: number },
): Promise<StoreDecision | undefined> {
  const limit = limits[number % limits.length]!;
  const counter = { limit, identity: `id${who}` };
  const units = costOf(share, limit.quota);
  const ms = Math.round(time * limit.windowMs(now / 1000));
  switch (kind) {
    case 'consume':
    case 'peek':
    case 'reserve': {
      const decision =
        kind === 'reserve'
          ? await store.reserve({ ...counter, cost: units, maxWaitMs: ms })
          : await ask(store, limit, { ...counter, cost: units, peek: kind === 'peek' });
      if (decision.allowed && kind !== 'peek') taken.push({ ...counter, units, ticket: decision.ticket });
      return decision;
    }
    case 'penalize':
      if (limit.algorithm.name !== 'concurrency') await store.penalize({ ...counter, units });
      return undefined;
    case 'block':
      await store.block(counter, ms);
      return undefined;
    case 'unblock':
      await store.block(counter, 0);
      return undefined;
    case 'refund without a place':
      await store.refund([{ ...counter, units }]);
      return undefined;
    case 'refund': {
      const refund = taken.splice(Math.floor(share * taken.length), 1)[0];
      if (refund !== undefined) await store.refund([refund]);
      return undefined;
    }
    case 'renew': {
      const lease = taken.find(({ limit: of }) => of.algorithm.name === 'concurrency');
      if (lease?.ticket !== undefined) await store.renew({ ...lease, ticket: lease.ticket });
      return undefined;
    }
    default:
      await store.reset([counter]);
      return undefined;
  }
}

export type Operation = typeof anyOperation extends fc.Arbitrary<infer T> ? T : never;
