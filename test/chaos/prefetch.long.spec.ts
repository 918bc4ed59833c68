import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { AlgorithmOptions } from '../../lib/index.js';
import { ensureBuilt } from '../support/processes/built.js';
import { bundledWorker } from '../support/processes/bundled-worker.js';
import { freshPrefix } from '../support/limits/stores.js';
import { most, mostWithin, type Use } from '../support/limits/uses.js';

const worker = bundledWorker('prefetch-worker.mjs');

const RUNS = Number(process.env['LEASE_RUNS'] ?? 2);
const PROCESSES = 4;
const FOR_MS = 1200;
/** How far the clocks of two processes of one machine may seem apart. */
const CLOCK_MS = 2;

const limits = fc.record({
  algo: fc.constantFrom('sliding-window', 'sliding-log', 'gcra', 'token-bucket', 'fixed-window'),
  rate: fc.integer({ min: 100, max: 3000 }),
  interval: fc.integer({ min: 300, max: 800 }),
  units: fc.integer({ min: 2, max: 500 }),
  ttl: fc.integer({ min: 10, max: 120 }),
});

describe('processes that hold units of one limit', () => {
  beforeAll(ensureBuilt);

  it(
    'never let more pass than the limit says in any stretch of time, though one of them is killed',
    async () => {
      await fc.assert(
        fc.asyncProperty(limits, async ({ units, ttl, ...limit }) => {
          const uses = await run(limit, { units, ttl: ttl * 1000 });
          // How many they are depends on how busy the machine is; but they are more than one process holds.
          expect(uses.length).toBeGreaterThan(Math.min(units, limit.rate / 4));
          for (const stretchMs of [limit.interval / 4, limit.interval, FOR_MS]) {
            expect(mostWithin(uses, stretchMs - CLOCK_MS)).toBeLessThanOrEqual(most(limit, stretchMs));
          }
        }),
        { numRuns: RUNS, endOnFailure: true },
      );
    },
    RUNS * 10_000 + 600_000,
  );
});

async function run(options: AlgorithmOptions, prefetch: object): Promise<Use[]> {
  const input = {
    url: process.env['TEST_REDIS_URL'],
    prefix: freshPrefix(),
    options,
    prefetch,
    forMs: FOR_MS,
    inFlight: 8,
  };
  const script = await worker();
  const uses: Use[] = [];
  const children = Array.from({ length: PROCESSES }, (_, index) =>
    // The first one is killed, and does not end before.
    fork(script, [JSON.stringify(index === 0 ? { ...input, forMs: 1000 * FOR_MS } : input)], {
      execArgv: [],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    }),
  );
  try {
    await Promise.all(children.map((child) => once(child, 'message')));
    for (const child of children) {
      child.on('message', (message: { uses: Use[] }) => uses.push(...message.uses));
      child.send('go');
    }
    const victim = setTimeout(() => children[0]!.kill('SIGKILL'), FOR_MS / 2);
    await Promise.all(children.map((child) => once(child, 'close')));
    clearTimeout(victim);
    expect(children.map(({ exitCode }) => exitCode)).toEqual([null, 0, 0, 0]);
    return uses.toSorted(([one], [other]) => one - other);
  } finally {
    await Promise.all(children.map(end));
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'exit');
  child.kill('SIGKILL');
  await closed;
}
