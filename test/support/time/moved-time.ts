import { setImmediate as turn } from 'node:timers/promises';
import { jest } from '@jest/globals';
import type { Redis } from 'ioredis';

/** So many answers of a server may follow from each other. */
const ROUNDS = 4;

/** The time of the process, which stands still until a test moves it: what is waited for costs no time. */
export class MovedTime {
  /** A store's clock that goes with it. Redis runs keys out on its own clock, which is behind this one by less than an hour. */
  static readonly clock = { now: () => Date.now() * 1000, slackMs: 3_600_000 };

  private isStopped = false;

  /** `redis` is the connection that stores have, since what they asked must be answered before time goes on. */
  constructor(private readonly redis: Redis) {}

  stop(): void {
    this.isStopped = true;
    jest.useFakeTimers();
  }

  run(): void {
    this.isStopped = false;
    jest.useRealTimers();
  }

  /** Lets all come to rest that waits for no timer. */
  async settle(): Promise<void> {
    for (let round = 0; round < ROUNDS; round++) {
      await turn();
      await this.redis.ping();
    }
  }

  /** Goes forward by so many milliseconds, one by one. */
  async pass(ms: number): Promise<void> {
    await this.settle();
    for (let passed = 0; passed < ms; passed++) {
      // A test that has failed must not move the time of the next one.
      if (!this.isStopped) throw new Error('time is not stopped any more');
      jest.advanceTimersByTime(1);
      await this.settle();
    }
  }

  /** Goes forward until an action has ended, and says how long it took. */
  async of<T>(action: () => Promise<T>): Promise<{ value: T; ms: number }> {
    const since = performance.now();
    const state = { hasEnded: false };
    const value = action().finally(() => (state.hasEnded = true));
    value.catch(() => undefined);
    await this.settle();
    while (!state.hasEnded) await this.pass(1);
    return { value: await value, ms: performance.now() - since };
  }
}
