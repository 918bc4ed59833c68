import { beforeAll, expect, it } from '@jest/globals';
import { ensureBuilt } from '../support/processes/built.js';
import { bundledWorker } from '../support/processes/bundled-worker.js';
import { isLong } from '../support/processes/chaos.js';
import { runProcesses } from '../support/processes/run-processes.js';
import { freshPrefix } from '../support/limits/stores.js';

const worker = bundledWorker('policy-worker.mjs');

const CHANGES = isLong ? 1000 : 200;
const RATES = [50, 60, 70, 80, 90];
const KEYS = ['tenant:acme', 'tenant:abel', 'tenant:b', 'user:1', 'tenant:off'];

/** What a worker has seen and knows at the end. */
interface Report {
  readonly seen: Record<string, { quotas: number[]; charged: number }>;
  readonly counts: { asked: number; off: number; denied: number; exempt: number };
  readonly lists: unknown;
  readonly last: { version: number }[];
  readonly held: unknown;
  readonly live: unknown;
}

beforeAll(ensureBuilt);

it('four instances under load decide only by states that were, while a fifth changes rates, modes and lists', async () => {
  const url = process.env['TEST_REDIS_URL'] as string;
  const prefix = freshPrefix();
  const input = { url, prefix, keys: KEYS, rates: RATES, changes: 0 };
  const inputs = [input, input, input, input, { ...input, changes: CHANGES }];
  let changed: (() => void) | undefined;
  const all = new Promise<void>((resolve) => (changed = resolve));
  const options = { during: () => all, onTold: () => changed?.() };
  const reports = await runProcesses<Report>(await worker(), inputs, options);
  // One that starts afterwards knows what is stored.
  const [first] = (await runProcesses<Report>(await worker(), [input])) as [Report];
  expect(first.last[0]!.version).toBeGreaterThan(CHANGES / 2);
  for (const { last, held, live, lists } of reports) {
    expect([last, held, live, lists]).toEqual([first.last, first.held, first.live, first.lists]);
  }
  const workers = reports.slice(0, 4);
  for (const { seen, counts } of workers) {
    expect(counts.asked).toBeGreaterThan(100);
    for (const { quotas } of Object.values(seen)) for (const quota of quotas) expect(RATES).toContain(quota);
  }
  // The log was never longer than the greatest of the rates allows, whichever of them held for an instance.
  for (const key of KEYS.filter((each) => each !== 'tenant:off')) {
    const charged = workers.reduce((sum, { seen }) => sum + (seen[key]?.charged ?? 0), 0);
    expect(charged).toBeGreaterThanOrEqual(RATES[0]!);
    expect(charged).toBeLessThanOrEqual(Math.max(...RATES));
  }
  // The one that is switched off and on is refused only while it is on.
  expect(workers.some(({ counts }) => counts.off > 0)).toBe(true);
  expect(workers.some(({ counts }) => counts.denied > 0)).toBe(true);
});
