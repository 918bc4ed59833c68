import { afterEach, expect, it, jest } from '@jest/globals';
import { MemoryStore } from '../../../lib/index.js';
import { compile, ManualClock } from '../../support/limits/stores.js';

const identity = 'user:42';

afterEach(() => void jest.restoreAllMocks());

it('thousands of lapsed holds are released without moving all others for each of them', async () => {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock: clock.now });
  const limit = compile({ algo: 'budget', period: 'month', limit: 10_000, hold: '1h', onLapse: 'release' });
  const hold = { entries: [{ limit, identity, cost: 1 }], hold: true, refundable: true };
  await store.check(Array.from({ length: 3000 }, () => hold));
  clock.advanceMs(3_600_000);
  const moved = jest.spyOn(Array.prototype, 'splice');
  const remaining: number[] = [];
  for (let time = 0; time < 4; time++) {
    const [decisions] = await store.check([{ entries: [{ limit, identity, cost: 1 }] }]);
    remaining.push(decisions![0]!.remaining);
  }
  const atFront = moved.mock.calls.filter(([start]) => start === 0).length;
  moved.mockRestore();
  expect(remaining).toEqual([8023, 9046, 9997, 9996]);
  expect(atFront).toBeLessThan(10);
  await store.close();
});
