import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from '@jest/globals';
import type { AlgorithmOptions } from '../../lib/algorithms/index.js';
import type { algorithmNames } from '../support/arbitraries.js';
import { ensureBuilt } from '../support/built.js';
import { runProcesses } from '../support/run-processes.js';
import { freshPrefix } from '../support/stores.js';

const WORKER = fileURLToPath(new URL('../support/limit-worker.mjs', import.meta.url));

const PROCESSES = 4;
const REQUESTS = 500;
const IN_FLIGHT = 64;
const QUOTA = 1000;

/** Limits of 1,000 units of which none comes back while the test runs. */
const limits: Record<(typeof algorithmNames)[number], AlgorithmOptions> = {
  'fixed-window': { algo: 'fixed-window', rate: QUOTA, interval: '1m' },
  'calendar-window': { algo: 'calendar-window', rate: QUOTA, period: 'year' },
  'sliding-window': { algo: 'sliding-window', rate: QUOTA, interval: '1m' },
  'sliding-log': { algo: 'sliding-log', rate: QUOTA, interval: '1m' },
  'token-bucket': { algo: 'token-bucket', rate: 1, interval: '1d', burst: QUOTA },
  'leaky-bucket': { algo: 'leaky-bucket', rate: 1, interval: '1d', queue: QUOTA - 1 },
  gcra: { algo: 'gcra', rate: 1, interval: '1d', burst: QUOTA },
};

describe('four processes with 64 requests in flight each', () => {
  beforeAll(ensureBuilt, 120_000);

  it.each(Object.values(limits))('are allowed exactly 1,000 of 2,000 by $algo', async (options) => {
    const input = {
      url: process.env['TEST_REDIS_URL'],
      prefix: freshPrefix(),
      options,
      requests: REQUESTS,
      inFlight: IN_FLIGHT,
    };
    const allowed = await runProcesses<number>(
      WORKER,
      Array.from({ length: PROCESSES }, () => input),
    );
    expect(allowed.reduce((sum, each) => sum + each, 0)).toBe(QUOTA);
  });
});
