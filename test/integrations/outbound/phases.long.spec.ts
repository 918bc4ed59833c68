import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { MemoryStore, RedisStore, type Store } from '../../../lib/index.js';
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

function ruleOf(phaseMs: number): SimulatedRule {
  const limit = compile({ algo: 'fixed-window', rate: given.quota, interval: given.windowMs }, `api${phaseMs}`);
  return {
    name: limit.name,
    limit,
    usualLimit: () => limit,
    onChange: () => undefined,
    fixedPriority: undefined,
    fixedCost: 1,
  };
}

const stopTime = () =>
  void jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'], now: 1_790_000_120_000 });

/** What was refused and what was used of what was possible, in all windows but the first two, which begin with what was not learnt yet. */
async function simulate(store: Store, phases: readonly number[]) {
  const seen = await simulateOutbound(
    phases.map((phaseMs) => ({ ...given, phaseMs })),
    store,
    phases.map(ruleOf),
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
