import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type AlgorithmOptions, MemoryStore, RedisStore, type Store } from '../../../lib/index.js';
import {
  type SimulatedRule,
  type SimulatedUpstream,
  simulateOutbound,
} from '../../support/limits/outbound-simulation.js';
import { MovedTime } from '../../support/time/moved-time.js';
import '../../support/limits/property-runs.js';
import { compile, connectRedis, freshPrefix } from '../../support/limits/stores.js';

/** Eight processes with 20 calls each, at an upstream of which another consumer takes up to a fifth, in bursts. */
const given: Omit<SimulatedUpstream, 'phaseMs'> = {
  quota: 500,
  windowMs: 5000,
  latencyMs: 40,
  storeMs: 4,
  otherShare: 0.2,
  processes: 8,
  waiting: 20,
  windows: 4,
};

/** The first call goes out at 0, and begins a window of ours. */
const PHASES = [-100, -30, -10, 0, 10, 30, 50, 100, 1000, 2500];

function ruleOf(phaseMs: number, options: AlgorithmOptions): SimulatedRule {
  const limit = compile(options, `api${phaseMs}`);
  return {
    name: limit.name,
    limit,
    usualLimit: () => limit,
    onChange: () => undefined,
    fixedPriority: undefined,
    fixedCost: 1,
  };
}

const stopTime = () => void jest.useFakeTimers({ now: 1_790_000_120_000 });

/** What was refused and what was used of what was possible, in all windows but the first two, which begin with what was not learnt yet. */
async function simulate(store: Store, phases: readonly number[]) {
  const rule = { algo: 'fixed-window', rate: given.quota, interval: given.windowMs } as const;
  const seen = await simulateOutbound(
    phases.map((phaseMs) => ({ ...given, phaseMs })),
    store,
    phases.map((phaseMs) => ruleOf(phaseMs, rule)),
  );
  for (const [index, windows] of seen.entries()) {
    const sum = { allowed: 0, refused: 0, possible: 0 };
    for (const { allowed, refused, possible } of windows.slice(2)) {
      sum.allowed += allowed;
      sum.refused += refused;
      sum.possible += possible;
    }
    expect({ phase: phases[index], ...sum, isFew: sum.refused <= 0.001 * sum.allowed }).toMatchObject({
      isFew: true,
    });
    expect({ phase: phases[index], ...sum, isMost: sum.allowed >= 0.95 * sum.possible }).toMatchObject({
      isMost: true,
    });
  }
}

describe('a limit that learns of an upstream, wherever the windows of both begin', () => {
  beforeEach(stopTime);
  afterEach(() => void jest.useRealTimers());

  it('in process', async () => {
    const store = new MemoryStore();
    await simulate(store, PHASES);
    await store.close();
  });

  it('on Redis', async () => {
    jest.useRealTimers();
    const redis = await connectRedis({ enableAutoPipelining: true });
    stopTime();
    try {
      const store = new RedisStore(redis, { clock: MovedTime.clock, prefix: freshPrefix(), timeoutMs: 60_000 });
      await simulate(store, [-10, 10, 50]);
    } finally {
      jest.useRealTimers();
      redis.disconnect();
    }
  });
});

describe('a limit with a configured rate that is too high', () => {
  beforeEach(stopTime);
  afterEach(() => void jest.useRealTimers());

  it.each<AlgorithmOptions>([
    { algo: 'fixed-window', rate: 200, interval: 5000 },
    { algo: 'sliding-window', rate: 200, interval: 5000 },
    { algo: 'token-bucket', rate: 40, interval: 1000, burst: 40 },
    { algo: 'gcra', rate: 40, interval: 1000, burst: 1 },
  ])('learns the quota of the upstream: $algo', async (options) => {
    const store = new MemoryStore();
    const upstreams = PHASES.map((phaseMs) => ({ ...given, quota: 50, otherShare: 0, windows: 6, phaseMs }));
    const rules = PHASES.map((phaseMs) => ruleOf(phaseMs, options));
    for (const windows of await simulateOutbound(upstreams, store, rules)) {
      const later = windows.slice(2);
      const sum = (of: 'allowed' | 'refused') => later.reduce((all, each) => all + each[of], 0);
      expect(sum('refused')).toBeLessThanOrEqual(0.02 * sum('allowed'));
      expect(sum('allowed')).toBeGreaterThanOrEqual(0.85 * 50 * later.length);
    }
    await store.close();
  });
});
