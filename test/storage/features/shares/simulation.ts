import type { AlgorithmOptions, Store } from '../../../../lib/index.js';
import { CompiledLimit } from '../../../../lib/testing/store/index.js';
import { featureTerms, type ManualClock } from '../../../support/limits/stores.js';

/** A tenant of a simulation, and what it asks for in an interval, evenly. */
export interface Demand {
  readonly id: string;
  readonly weight: number;
  readonly perInterval: number;
}

export function sharedLimit(options: AlgorithmOptions, { floor = 0, name = 'gpu' } = {}): CompiledLimit {
  return new CompiledLimit(options, {
    location: 'test',
    name,
    features: featureTerms({ share: { by: 'global', floor } }, 'test'),
  });
}

/** What each tenant got after the first `warmUp` intervals, a unit a request. A refused request is not repeated. */
export async function allocate(
  store: Store,
  clock: ManualClock,
  limit: CompiledLimit,
  demands: readonly Demand[],
  { intervals, warmUp, stepMs = 100 }: { intervals: number; warmUp: number; stepMs?: number },
): Promise<Map<string, number>> {
  const got = new Map(demands.map(({ id }) => [id, 0]));
  // They do not ask all at the same moment.
  const owed = new Map(demands.map(({ id }, index) => [id, (index * 0.618) % 1]));
  const lengthMs = limit.windowMs(0);
  const tenants = new Map(demands.map(({ id, weight }) => [id, limit.meet({ tenant: { id, weight } })]));
  for (let ms = 0; ms < intervals * lengthMs; ms += stepMs) {
    for (const { id, perInterval } of demands) {
      let asks = owed.get(id)! + (perInterval * stepMs) / lengthMs;
      for (; asks >= 1; asks--) {
        const [decisions] = await store.check([
          { entries: [{ limit: tenants.get(id)!, identity: 'global', cost: 1 }] },
        ]);
        if (decisions![0]!.allowed && ms >= warmUp * lengthMs) got.set(id, got.get(id)! + 1);
      }
      owed.set(id, asks);
    }
    clock.advanceMs(stepMs);
  }
  return got;
}

/** Jain's index of fairness (R. Jain and others, 1984): 1 if all values are equal, 1 / n if one has all. */
export function jain(values: readonly number[]): number {
  const sum = values.reduce((total, each) => total + each, 0);
  const squares = values.reduce((total, each) => total + each * each, 0);
  return (sum * sum) / (values.length * squares);
}

/** What each would get of a capacity by max-min fairness: nobody more than it asks for, and the rest in proportion to weights. */
export function maxMin(demands: readonly Demand[], capacity: number): number[] {
  const given = new Map<Demand, number>();
  let open = [...demands];
  let left = capacity;
  for (;;) {
    const weights = open.reduce((total, { weight }) => total + weight, 0);
    const level = left / weights;
    const satisfied = open.filter(({ perInterval, weight }) => perInterval <= level * weight);
    if (satisfied.length === 0) {
      for (const each of open) given.set(each, level * each.weight);
      break;
    }
    for (const each of satisfied) {
      given.set(each, each.perInterval);
      left -= each.perInterval;
    }
    open = open.filter((each) => !satisfied.includes(each));
  }
  return demands.map((each) => given.get(each)!);
}
