import { beforeAll, describe, expect, it } from '@jest/globals';
import type { AlgorithmOptions } from '../../lib/index.js';
import type { algorithmNames } from '../support/limits/arbitraries.js';
import { ensureBuilt } from '../support/processes/built.js';
import { bundledWorker } from '../support/processes/bundled-worker.js';
import { isLong } from '../support/processes/chaos.js';
import { runProcesses } from '../support/processes/run-processes.js';
import { freshPrefix } from '../support/limits/stores.js';

const worker = bundledWorker('clock-worker.mjs');

const PROCESSES = 3;
const QUOTA = 50;
/** Of each process in each phase: together more than the quota. */
const REQUESTS = 20;
const PHASES = isLong ? 500 : 36;
const INTERVAL_MS = 60_000;
const START_MICROS = 1_790_000_123_456_789;

/** 50 units, which all come back in a minute. */
const limits: Record<(typeof algorithmNames)[number], AlgorithmOptions> = {
  'fixed-window': { algo: 'fixed-window', rate: QUOTA, interval: INTERVAL_MS },
  'calendar-window': { algo: 'calendar-window', rate: QUOTA, period: 'minute' },
  'sliding-window': { algo: 'sliding-window', rate: QUOTA, interval: INTERVAL_MS },
  'sliding-log': { algo: 'sliding-log', rate: QUOTA, interval: INTERVAL_MS },
  'token-bucket': { algo: 'token-bucket', rate: QUOTA, interval: INTERVAL_MS },
  'leaky-bucket': { algo: 'leaky-bucket', rate: QUOTA, interval: INTERVAL_MS, queue: QUOTA - 1 },
  gcra: { algo: 'gcra', rate: QUOTA, interval: INTERVAL_MS },
};

/** Small and large, forward and back; the same in each run. */
const STEPS_MS = [7_000, -3_000, 20_000, -90_000, 61_000, -61_000, 1, -1, 30_000, -3_600_000, 0, 45_000];

const names = Object.keys(limits);

beforeAll(ensureBuilt);

describe('processes whose clock is set forward and back', () => {
  const run = async (steps: readonly number[]) => {
    const phases = [START_MICROS];
    for (let phase = 1; phase < PHASES; phase++) phases.push(phases.at(-1)! + steps[phase % steps.length]! * 1000);
    const input = {
      url: process.env['TEST_REDIS_URL'],
      prefix: freshPrefix(),
      limits: Object.values(limits),
      phases,
      requests: REQUESTS,
    };
    const inputs = Array.from({ length: PROCESSES }, () => input);
    const timeoutMs = 500_000 + PHASES * 200;
    const results = await runProcesses<number[][]>(await worker(), inputs, { timeoutMs });
    const allowed = phases.map((_, phase) => names.map((_, limit) => sum(results.map((each) => each[phase]![limit]!))));
    return { phases, allowed };
  };
  const longMs = 600_000 + PHASES * 200;

  it(
    'are never allowed more than the quota at once, and than it with what came back while time went forward',
    async () => {
      const { phases, allowed } = await run(STEPS_MS);
      const forwardMs = phases.map((now, phase) => Math.max(0, now - (phases[phase - 1] ?? now)) / 1000);
      for (const [limit, name] of names.entries()) {
        for (const counts of allowed) expect([name, counts[limit]! <= QUOTA]).toEqual([name, true]);
        const total = sum(allowed.map((counts) => counts[limit]!));
        expect([name, total <= QUOTA * (1 + Math.ceil(sum(forwardMs) / INTERVAL_MS))]).toEqual([name, true]);
        // And nobody is blocked for good.
        expect(total).toBeGreaterThan(QUOTA);
      }
    },
    longMs,
  );

  it(
    'are allowed the quota once while it is only set back',
    async () => {
      const { allowed } = await run(STEPS_MS.map((step) => -Math.abs(step)));
      const totals = names.map((name, limit) => [name, sum(allowed.map((counts) => counts[limit]!))]);
      expect(totals).toEqual(names.map((name) => [name, QUOTA]));
    },
    longMs,
  );
});

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
