import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { LimiterService, MemoryStore, RateLimitModule, RateLimitStoreError } from '../../../lib/index.js';
import type { ReserveEntry } from '../../../lib/testing/store/index.js';
import { type LimitedJob, rateLimited } from '../../../lib/integrations/bullmq/index.js';
import { RateLimitTesting, TestClock } from '../../../lib/testing/index.js';

const DEFINE = {
  paced: { algo: 'gcra', rate: 1, interval: '1s', burst: 1 },
  kept: { algo: 'gcra', rate: 1, interval: '1s', burst: 10, reserveFor: { critical: 0.3, default: 0.2 } },
  important: { algo: 'gcra', rate: 1, interval: '1s', burst: 10, reserveFor: { critical: 0.3 }, priority: 'critical' },
  slots: { algo: 'concurrency', limit: 10, ttl: '1m', reserveFor: { critical: 0.3 } },
} as const;
type Name = keyof typeof DEFINE;

/** Does what it is asked, and loses its answers to those who ask to start. */
class LossyStore extends MemoryStore {
  losesStarts = false;

  override async reserve(entry: ReserveEntry) {
    const answer = await super.reserve(entry);
    if (this.losesStarts && entry.ofStarts === true) throw new RateLimitStoreError('no answer in time');
    return answer;
  }
}

/** A job of a queue whose workers are never busy. */
class SimulatedJob implements LimitedJob {
  readonly queueQualifiedName = 'bull:sync';
  readonly timestamp = Date.now();
  readonly opts = {};
  readonly priority = 1;
  attemptsMade = 0;
  stalledCounter = 0;
  delays = 0;
  dueMs = 0;

  constructor(readonly id: string) {}

  async changePriority(): Promise<void> {}

  async moveToDelayed(timestamp: number): Promise<void> {
    this.delays++;
    this.dueMs = timestamp - Date.now();
  }
}

const jobs = (count: number) => Array.from({ length: count }, (_, index) => new SimulatedJob(String(index)));

describe('jobs of workers that are never busy', () => {
  let app: TestingModule;
  let clock: TestClock;
  let store: LossyStore;
  let started: string[];

  beforeEach(async () => {
    clock = new TestClock();
    store = new LossyStore({ clock: clock.now });
    const builder = Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ define: DEFINE, onStoreError: 'deny' })],
    });
    app = await RateLimitTesting.useStore(builder, store).compile();
    app.useLogger(false);
    started = [];
  });
  afterEach(() => app.close());

  const processor = (name: Name, work: () => Promise<unknown> = async () => 'done') =>
    rateLimited<SimulatedJob, unknown>(
      (job) => {
        started.push(job.id);
        return work();
      },
      { limiter: app.get(LimiterService).for(name), key: 'shop' },
    );
  /** Says whether it started. */
  const take = async (job: SimulatedJob, process: ReturnType<typeof processor>) => {
    try {
      await process(job, 'token');
      return true;
    } catch (error) {
      if ((error as Error).name === 'DelayedError') return false;
      throw error;
    }
  };

  it('start no faster than the limit once answers come again that were lost', async () => {
    const process = processor('paced');
    store.losesStarts = true;
    const waiting = jobs(4);
    for (const job of waiting) {
      expect(await take(job, process)).toBe(false);
      clock.advance('1s');
    }
    clock.advance('10s');
    store.losesStarts = false;
    for (const job of waiting) await take(job, process);
    expect(started).toHaveLength(1);
    for (let rounds = 0; rounds < 20 && started.length < 4; rounds++) {
      clock.advance('1s');
      const before = started.length;
      for (const job of waiting) if (!started.includes(job.id)) await take(job, process);
      expect(started.length - before).toBeLessThanOrEqual(1);
    }
    expect(started).toHaveLength(4);
  });

  it('use their own start again if their worker died', async () => {
    const [job] = jobs(1);
    const process = processor('paced', () => new Promise(() => undefined));
    void process(job!, 'token');
    while (started.length === 0) await new Promise((resolve) => setImmediate(resolve));
    clock.advance('500ms');
    job!.stalledCounter = 1;
    expect(await take(job!, processor('paced'))).toBe(true);
  });

  it('start at once when their key was reset', async () => {
    const process = processor('paced');
    const [first, second] = jobs(2);
    await take(first!, process);
    await app.get(LimiterService).for('paced').reset('shop');
    expect(await take(second!, process)).toBe(true);
  });

  it('do not start while their key is blocked, though they have reserved', async () => {
    const process = processor('paced');
    const [first, second, third] = jobs(3);
    for (const job of [first!, second!, third!]) await take(job, process);
    const limiter = app.get(LimiterService).for('paced');
    await limiter.block('shop', '1m');
    clock.advance('1s');
    expect([await take(second!, process), second!.dueMs > 55_000]).toEqual([false, true]);
    clock.advance('10s');
    await limiter.unblock('shop');
    expect(await take(third!, process)).toBe(true);
    clock.advance('49s');
    expect(await take(second!, process)).toBe(true);
  });

  it.each<[Name, number]>([
    ['kept', 7],
    ['important', 10],
  ])('leave units that are kept for what is more important: %s', async (name, most) => {
    const process = processor(name);
    for (const job of jobs(12)) await take(job, process);
    expect(started).toHaveLength(most);
  });

  it('hold no units that are kept', async () => {
    const process = processor('slots', () => new Promise(() => undefined));
    for (const job of jobs(12)) void take(job, process);
    while (started.length < 7) await new Promise((resolve) => setImmediate(resolve));
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve));
    expect(started).toHaveLength(7);
  });
});
