import { beforeAll, describe, expect, it } from '@jest/globals';
import type { AlgorithmOptions } from '../../lib/index.js';
import type { algorithmNames } from '../support/limits/arbitraries.js';
import { ensureBuilt } from '../support/processes/built.js';
import { bundledWorker } from '../support/processes/bundled-worker.js';
import { runProcesses } from '../support/processes/run-processes.js';
import { freshPrefix } from '../support/limits/stores.js';

const worker = bundledWorker('limit-worker.mjs');

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
  let results: number[][];

  beforeAll(ensureBuilt);
  beforeAll(async () => {
    const input = {
      url: process.env['TEST_REDIS_URL'],
      prefix: freshPrefix(),
      limits: Object.values(limits),
      requests: REQUESTS,
      inFlight: IN_FLIGHT,
    };
    const inputs = Array.from({ length: PROCESSES }, () => input);
    results = await runProcesses<number[]>(await worker(), inputs);
  });

  it.each(Object.keys(limits).map((algo, index) => ({ algo, index })))(
    'are allowed exactly 1,000 of 2,000 by $algo',
    ({ index }) => {
      expect(results.reduce((sum, allowed) => sum + allowed[index]!, 0)).toBe(QUOTA);
    },
  );
});
