import { beforeAll, expect, it } from '@jest/globals';
import { ensureBuilt } from '../support/processes/built.js';
import { bundledWorker } from '../support/processes/bundled-worker.js';
import { isLong } from '../support/processes/chaos.js';
import { runProcesses } from '../support/processes/run-processes.js';
import { freshPrefix } from '../support/limits/stores.js';

const worker = bundledWorker('overrides-worker.mjs');

const ROUNDS = isLong ? 200 : 20;
/** What the guide promises. The short form may share its machine, and proves only that each change is heard. */
const MOST_MS = isLong ? 100 : Infinity;

beforeAll(ensureBuilt);

it('changed rates reach an app in another process within 100 ms', async () => {
  const input = { url: process.env['TEST_REDIS_URL'], prefix: freshPrefix(), rounds: ROUNDS };
  const inputs = [
    { ...input, sets: true },
    { ...input, sets: false },
  ];
  const [set, seen] = await runProcesses<number[]>(await worker(), inputs);
  const delays = seen!.map((moment, round) => moment - set![round]!);
  expect(delays).toHaveLength(ROUNDS);
  expect(Math.max(...delays)).toBeLessThanOrEqual(MOST_MS);
});
