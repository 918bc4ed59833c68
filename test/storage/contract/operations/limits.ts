import type { AlgorithmOptions } from '../../../../lib/index.js';
import { type Check, CompiledLimit, type StoreDecision } from '../../../../lib/testing/store/index.js';
import { expectHolds, propertyRuns } from '../../../support/limits/property-runs.js';
import { algorithmNames } from '../../../support/limits/arbitraries.js';
import { compile } from '../../../support/limits/stores.js';
import { five as rates } from '../checks/limits.js';

export const RUNS = propertyRuns(60);

export const SECOND = 1000;

export { DAY, HOUR } from '../checks/limits.js';

export const everyAlgorithm = [...algorithmNames, 'concurrency' as const];

/** Five units at once, of which one comes back every 2 s where they come back one by one. */
export const five: Record<(typeof everyAlgorithm)[number], AlgorithmOptions> = {
  ...rates,
  concurrency: { algo: 'concurrency', limit: 5, ttl: '10s' },
};

export const atOnce: AlgorithmOptions = { algo: 'token-bucket', rate: 5, interval: '10s', refill: 'intervally' };

export const identity = 'ip:203.0.113.7';

/** A limit that refuses for so long whom it has refused. */
export const blocking = (options: AlgorithmOptions, blockForMs: number, name = 'blocking', shadow = false) =>
  new CompiledLimit(options, { location: 'test', name, shadow, blockFor: blockForMs * 1000 });

export const start = Date.parse('2026-09-21T10:00:00Z');

export const counterOf = (limit: CompiledLimit) => ({ limit, identity });

export const limited = (algo: 'token-bucket' | 'gcra', rate: number, burst: number) =>
  compile({ algo, rate, interval: '10s', burst }, 'one');

export const queue = (units: number) =>
  compile({ ...five['leaky-bucket'], queue: units - 1 } as AlgorithmOptions, 'one');

export const checkOf = (entries: [limit: CompiledLimit, cost: number][]): Check => ({
  entries: entries.map(([limit, cost]) => ({ limit, identity, cost })),
});

export const PENALTY = 90 * SECOND;

export const blocked = (ms: number) => ({ allowed: false, remaining: 0, retryAfterMs: ms, resetAfterMs: ms });

export const sum = (values: number[]) => values.reduce((all, each) => all + each, 0);

/** A slice of 2 s. */
export const slice = (from: number, count: number) => ({ start: start + from, end: start + from + 2000, count });

/** Nothing that a decision says is out of its bounds. */
export function expectSound(limit: CompiledLimit, decision: StoreDecision): void {
  const { allowed, remaining, retryAfterMs, resetAfterMs, delayMs, quota } = decision;
  expectHolds(decision, {
    'has the quota of the limit': quota === limit.quota,
    'leaves something from 0 to the quota': remaining >= 0 && remaining <= quota,
    'names no time that is over': resetAfterMs >= 0 && delayMs >= 0,
    'waits if it is refused, and only then': allowed ? retryAfterMs === 0 : retryAfterMs > 0,
  });
}
