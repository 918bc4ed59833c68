import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import type { AlgorithmOptions } from '../../../lib/index.js';
import { ensureBuilt } from '../../support/processes/built.js';
import { runProcesses, STEADY_HEAP } from '../../support/processes/run-processes.js';

describe('the memory of counters', () => {
  const measured: [string, AlgorithmOptions, counters: number, times: number][] = [
    ['gcra', { algo: 'gcra', rate: 1000, interval: '1h' }, 2500, 1],
    ['fixed-window', { algo: 'fixed-window', rate: 1000, interval: '1h' }, 2500, 1],
    ['token-bucket', { algo: 'token-bucket', rate: 1000, interval: '1h' }, 2500, 1],
    ['calendar-window', { algo: 'calendar-window', rate: 1000, period: 'year' }, 2500, 1],
    ['leaky-bucket', { algo: 'leaky-bucket', rate: 1000, interval: '1h' }, 2500, 1],
    ['sliding-log', { algo: 'sliding-log', rate: 1000, interval: '1h' }, 2500, 1],
    ['a long sliding-log', { algo: 'sliding-log', rate: 1000, interval: '1h' }, 125, 300],
    ['sliding-window', { algo: 'sliding-window', rate: 1000, interval: '1h' }, 2500, 1],
    ['a finer one', { algo: 'sliding-window', rate: 1000, interval: '1h', slices: 1000 }, 500, 3],
    ['concurrency', { algo: 'concurrency', limit: 1000, ttl: '1h' }, 2500, 1],
    ['100 leases', { algo: 'concurrency', limit: 1000, ttl: '1h' }, 125, 100],
  ];

  // In a process of its own, whose heap holds nothing else.
  it('is estimated to a factor of 2', async () => {
    await ensureBuilt();
    const floods = measured.map(([, options, counters, times]) => ({ options, counters, times }));
    const worker = fileURLToPath(new URL('../../support/processes/memory-worker.mjs', import.meta.url));
    const options = { flags: STEADY_HEAP };
    const [taken] = await runProcesses<{ size: number; bytes: number; heap: number }[]>(worker, [{ floods }], options);
    const wrong = taken!.flatMap(({ size, bytes, heap }, index) => {
      const [what, , counters] = measured[index]!;
      return size === counters && heap > bytes / 2 && heap < bytes * 2 ? [] : [{ what, size, bytes, heap }];
    });
    expect(wrong).toEqual([]);
    expect(taken).toHaveLength(measured.length);
  });
});
