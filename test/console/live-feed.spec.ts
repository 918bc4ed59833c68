import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import type { Tick, TopKeys } from '../../lib/console/api.js';
import { LiveFeed } from '../../lib/console/http/live-feed.js';
import { nodeResponse } from '../support/responses.js';

beforeEach(() => void jest.useFakeTimers({ now: 0 }));
afterEach(() => void jest.useRealTimers());

it('reads once a second for all viewers, also if several come before the first reading ends', async () => {
  let readings = 0;
  const tick = () => new Promise<Tick>((resolve) => setTimeout(() => resolve({ at: ++readings } as Tick), 50));
  const feed = new LiveFeed(tick, () => Promise.resolve({} as TopKeys), Date.now);
  for (let viewer = 0; viewer < 8; viewer++) {
    feed.add(nodeResponse(), {}, undefined);
  }
  await jest.advanceTimersByTimeAsync(2000);
  const before = readings;
  await jest.advanceTimersByTimeAsync(5000);
  expect(readings - before).toBe(5);
  feed.close();
  const after = readings;
  await jest.advanceTimersByTimeAsync(5000);
  expect(readings).toBe(after);
});
