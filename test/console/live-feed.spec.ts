import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import type { Tick, TopKeys } from '../../lib/console/api.js';
import { LiveFeed, MOST_VIEWERS } from '../../lib/console/http/live-feed.js';
import { nodeResponse } from '../support/http/responses.js';

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

it('gives nobody all places: whoever has most of them makes room for others', () => {
  const feed = new LiveFeed(
    () => Promise.resolve({} as Tick),
    () => Promise.resolve({} as TopKeys),
    Date.now,
  );
  const places = new Map<string, number>();
  const come = (from: string) => {
    const response = nodeResponse();
    feed.makeRoom(from);
    feed.add(response, {}, undefined, from);
    places.set(from, (places.get(from) ?? 0) + 1);
    response.on('finish', () => places.set(from, places.get(from)! - 1));
  };
  for (let viewer = 0; viewer < MOST_VIEWERS; viewer++) come('greedy');
  expect(() => come('greedy')).toThrow('32 viewers are already connected to this instance: close one of them first');
  for (let viewer = 0; viewer < MOST_VIEWERS / 2; viewer++) come('other');
  expect(() => come('other')).toThrow('32 viewers are already connected to this instance: close one of them first');
  expect(() => come('greedy')).toThrow('32 viewers are already connected to this instance: close one of them first');
  come('third');
  expect(feed.size).toBe(MOST_VIEWERS);
  feed.close();
});
